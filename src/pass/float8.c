/* Matmuls of the transformer blocks in 8 bits (dtype=float8): forward in e4m3, gradients in e5m2 or
 * e4m3, accumulation in f32.
 *
 * This pass runs after the pass `precision`, which made these matmuls bf16: qkv, the attention
 * output, and the two or three matmuls of the feed-forward part. Each operand is quantized once, to
 * codes in the original order and to transposed codes: x is needed in one order for x w and in the
 * other order for the gradient of w; likewise w and the gradient dy are needed in both orders. A
 * GPT-2 block has 12 such tensors. Each tensor has a scale that follows its largest magnitude
 * (amax) in previous steps, which is state in device memory (STORAGE_AMAX). Other nodes do not
 * change. The pass runs after `recompute`, so that recomputed values have their own QUANTIZE and
 * each amax is written once. */
#include "graph/build.h"
#include "pass/pass.h"

struct quantized {
    value code, transposed, scale;
};

struct float8 {
    const struct pass_options *options;
    const struct graph *in;
    struct graph *out;
    value *map;
    struct quantized *quantized; /* per value of `in`: its quantized form, created on first use */
    value step;                  /* the input `step` in `out`, after its leaf was copied */
    int tensors;
};

/* The value whose numbers `v` has: follows reshapes, which keep the order of elements, and casts,
 * which precede each matmul below the rung `full`, as long as values are bf16. */
static value origin_of(const struct graph *g, value v)
{
    const struct node *n = graph_producer(g, v);
    int64_t columns = type_columns(graph_type(g, v));
    while ((n->op == OP_RESHAPE || n->op == OP_CAST) &&
           type_columns(graph_type(g, n->in[0])) == columns) {
        v = n->in[0];
        n = graph_producer(g, v);
    }
    return v;
}

/* True if rows and columns are multiples of 16 elements: tensor cores read words of 16 bytes from
 * every matrix of a matmul and from its transpose. */
static bool is_aligned(const struct type *t)
{
    enum { WORD = 16 };
    return t->dtype == DT_BF16 && type_rows(t) % WORD == 0 && type_columns(t) % WORD == 0;
}

static bool is_block_matmul(const struct graph *g, const struct node *n)
{
    bool matmul = n->op == OP_LINEAR || n->op == OP_MATMUL;
    return matmul && n->layer >= 0 && is_aligned(graph_type(g, n->in[0])) &&
           is_aligned(graph_type(g, n->in[1]));
}

static bool is_weight(const struct graph *g, value v)
{
    const struct node *w = graph_producer(g, origin_of(g, v));
    return w->op == OP_LEAF &&
           (w->attr.leaf.storage == STORAGE_WEIGHTS || w->attr.leaf.storage == STORAGE_COPY);
}

/* x w or dy w^T */
static bool is_matmul_with_weight(const struct graph *g, const struct node *n)
{
    if (!is_block_matmul(g, n) || graph_type(g, n->in[1])->rank != 2) return false;
    return !(n->op == OP_MATMUL && n->attr.matmul.ta) && is_weight(g, n->in[1]);
}

/* x^T dy or dy^T x */
static bool is_weight_gradient(const struct graph *g, const struct node *n)
{
    return is_block_matmul(g, n) && n->op == OP_MATMUL && n->attr.matmul.ta && !n->attr.matmul.tb &&
           graph_type(g, n->in[0])->rank == 2 && graph_type(g, n->out[0])->dtype == DT_F32;
}

static bool is_forward(const struct node *n)
{
    return n->phase == PHASE_FORWARD || n->region; /* region: a recomputed forward node */
}

static value amax_leaf(struct float8 *f, const char *what)
{
    struct type t = type_1d(DT_F32, AMAX_STEPS);
    return g_leaf(f->out, STORAGE_AMAX, what, t, f->tensors++ * range_elements(&t));
}

/* The attributes of a QUANTIZE. In steps before an amax is known, the scale is 2^-first.
 * Activations and weights have first = 3, for magnitudes up to 56. Gradients are small because the
 * loss is a mean over tokens: they have first = 21 in e5m2, for magnitudes of 7e-12 to 0.027, and
 * first = 20 in e4m3, for magnitudes of 2e-9 to 4e-4. */
static union attr attr_of(const struct float8 *f, bool activation)
{
    enum { ACTIVATION = 3, GRADIENT_E5M2 = 21, GRADIENT_E4M3 = 20 };
    enum dtype gradients = f->options->float8_gradients;
    if (activation) return (union attr){.quantize = {DT_E4M3, ACTIVATION}};
    int first = gradients == DT_E5M2 ? GRADIENT_E5M2 : GRADIENT_E4M3;
    return (union attr){.quantize = {gradients, first}};
}

static const struct quantized *quantized(struct float8 *f, value old)
{
    value origin = origin_of(f->in, old);
    struct quantized *q = &f->quantized[origin.i];
    if (q->code.i) return q;
    bool weight = is_weight(f->in, origin);
    bool activation = weight || is_forward(graph_producer(f->in, origin));
    union attr attr = attr_of(f, activation);
    const char *what = weight ? "w" : activation ? "x" : "dy";
    while (graph_producer(f->in, old)->op == OP_RESHAPE) old = graph_producer(f->in, old)->in[0];
    value from[] = {amax_leaf(f, what), f->map[old.i], f->step};
    value first = graph_add(f->out, OP_QUANTIZE, &attr, 3, from, NULL);
    *q = (struct quantized){graph_out(first, 1), graph_out(first, 2), graph_out(first, 3)};
    return q;
}

static value scaled(struct float8 *f, const struct node *n, value a, value b, value scale_a,
                    value scale_b)
{
    value from[] = {a, b, scale_a, scale_b, {0}};
    const struct type *given = graph_type(f->in, n->out[0]);
    union attr attr = {.matmul = {.tb = true, .fast = is_forward(n)}};
    if (n->op == OP_LINEAR) from[4] = g_cast(f->out, f->map[n->in[2].i], given->dtype);
    return graph_add(f->out, OP_MATMUL_SCALED, &attr, n->op == OP_LINEAR ? 5 : 4, from, given);
}

/* Replaces a bf16 matmul by MATMUL_SCALED, whose operands must be contiguous along K. */
static void quantize_matmul(struct float8 *f, const struct node *n)
{
    bool weight = is_matmul_with_weight(f->in, n);
    bool tb = n->op == OP_LINEAR ? n->attr.linear.tb : n->attr.matmul.tb;
    pass_inherit_place(f->out, n);
    const struct quantized *a = quantized(f, n->in[0]), *b = quantized(f, n->in[1]);
    value left = weight ? a->code : a->transposed, right = tb ? b->code : b->transposed;
    f->map[n->out[0].i] = scaled(f, n, left, right, a->scale, b->scale);
}

enum status pass_float8(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    struct float8 f = {.options = o, .in = in, .out = out};
    f.map = ARENA_NEW(out->arena, value, in->values);
    f.quantized = ARENA_NEW(out->arena, struct quantized, in->values);
    value step = graph_find_leaf(in, STORAGE_INPUT, "step");
    for (int id = 0; id < in->nodes; id++) {
        const struct node *n = &in->node[id];
        bool one =
            o->float8_gradients && (is_matmul_with_weight(in, n) || is_weight_gradient(in, n));
        if (one && f.step.i && graph_status(out) == ST_OK)
            quantize_matmul(&f, n);
        else
            pass_copy_node(in, id, out, f.map);
        if (step.i && n->out[0].i == step.i) f.step = f.map[step.i];
    }
    pass_finish(in, out, f.map);
    return graph_status(out);
}
