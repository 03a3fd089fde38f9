/* 8-bit matmuls and their operands: e4m3 or e5m2 numbers with one scale per tensor. */
#include "graph/build.h"
#include "graph/op_rules.h"

/* amax (AMAX_STEPS), x (...,C) with N rows, step (1) -> amax, codes (N,C), codes transposed (C,N),
 * scale (1)
 *
 * A code is x / scale rounded to the nearest number of the type, ties to even, saturated at the
 * type's largest number; NaN stays NaN. The scale is a power of two, so the division is exact. The
 * scale follows the largest |x| of earlier steps (delayed scaling). Slot s % AMAX_STEPS of amax
 * belongs to step s: a run of step s updates the slot of step s, clears the slot of the next step,
 * and uses the largest finite value of the other slots. The code of that value is in the uppermost
 * complete binade of the type, so a tensor may grow by a factor of 1.75 before it saturates. If all
 * other slots are zero, the scale is 2^-first. */
enum status shape_quantize(struct node *n, const struct type *in, const struct type *,
                           struct type *out)
{
    char t[TYPE_TEXT];
    enum dtype to = n->attr.quantize.to;
    if (in[0].rank != 1 || in[0].dim[0] != AMAX_STEPS || type_elements(&in[2]) != 1)
        return fail(ST_USAGE, "needs an amax history of %d steps and one step number", AMAX_STEPS);
    if (!dtype_is_float8(to) || in[1].rank < 2 || dtype_is_float8(in[1].dtype))
        return fail(ST_USAGE, "%s cannot be quantized to %s", type_text(t, &in[1]), dtype_name(to));
    out[0] = in[0];
    out[1] = type_2d(to, type_rows(&in[1]), type_columns(&in[1]));
    out[2] = type_2d(to, type_columns(&in[1]), type_rows(&in[1]));
    out[3] = type_scalar(in[0].dtype);
    n->n_out = 4;
    return ST_OK;
}

static void quantize(struct graph *g, const struct node *n, value amax, value x, value step,
                     value *out)
{
    value in[] = {amax, x, step};
    value first = graph_add(g, OP_QUANTIZE, &n->attr, 3, in, NULL);
    for (int i = 0; i < 4; i++) out[i] = graph_out(first, i);
}

/* amax, x, step -> outputs of QUANTIZE for gelu(x), which is not rounded before quantization */
void expand_quantize_gelu(struct graph *g, const struct node *n, const value *in, value *out)
{
    quantize(g, n, in[0], g_gelu(g, in[1], n->attr.quantize.tanh), in[2], out);
}

/* amax, dy, step, x -> outputs of QUANTIZE for dy gelu'(x), not rounded before quantization */
enum status shape_quantize_gelu_grad(struct node *n, const struct type *in,
                                     const struct type *given, struct type *out)
{
    if (!type_same(&in[1], &in[3]))
        return fail(ST_USAGE, "the input of GELU and its gradient differ in shape");
    return shape_quantize(n, in, given, out);
}

void expand_quantize_gelu_grad(struct graph *g, const struct node *n, const value *in, value *out)
{
    value dx = g_gelu_grad(g, in[1], in[3], n->attr.quantize.tanh);
    quantize(g, n, in[0], dx, in[2], out);
}

/* amax, a (...,C), step, b (...,C), w (C) [, bias (C)] -> outputs of QUANTIZE for y, then
 * a + dropout(b), mean, rstd. y is the normalized output of ADD_LAYERNORM, rounded to the type of a
 * before quantization, so the codes are those of ADD_LAYERNORM and QUANTIZE as two operators. */
enum status shape_quantize_add_layernorm(struct node *n, const struct type *in,
                                         const struct type *given, struct type *out)
{
    struct node norm = {.op = OP_ADD_LAYERNORM, .n_in = n->n_in - 1};
    struct type norm_in[] = {in[1], in[3], in[2], in[4], in[n->n_in - 1]}, made[4];
    TRY(shape_add_layernorm(&norm, norm_in, given, made));
    TRY(shape_quantize(n, in, given, out));
    out[4] = made[0];
    out[5] = made[2];
    out[6] = made[3];
    n->n_out = 7;
    return ST_OK;
}

void expand_quantize_add_layernorm(struct graph *g, const struct node *n, const value *in,
                                   value *out)
{
    bool bias = n->n_in == 6;
    union attr attr = {
        .norm = {.eps = n->attr.quantize.eps, .bias = bias, .drop = n->attr.quantize.drop}};
    value from[] = {in[1], in[3], in[2], in[4], bias ? in[5] : (value){0}};
    value sum = graph_add(g, OP_ADD_LAYERNORM, &attr, n->n_in - 1, from, NULL);
    quantize(g, n, in[0], graph_out(sum, 1), in[2], out);
    out[4] = sum;
    out[5] = graph_out(sum, 2);
    out[6] = graph_out(sum, 3);
}

struct cost cost_quantize_norm(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_quantize(n, in, out);
    bool drops = n->attr.quantize.drop.threshold > 0;
    c.flops += (drops ? 10.0 : 9.0) * (double)type_elements(&in[1]); /* as for ADD_LAYERNORM */
    return c;
}

struct cost cost_quantize_gelu(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_quantize(n, in, out);
    c.flops += 10.0 * (double)type_elements(&in[1]); /* as for GELU */
    return c;
}

struct cost cost_quantize(const struct node *n, const struct type *in, const struct type *out)
{
    return cost_each(n, in, out, 2, &in[1]); /* scale and compare */
}

/* a (M,K) and b (N,K) of 8 bits, scales (1) and (1) [, bias (N)] -> a b^T scale_a scale_b + bias,
 * of type `given`: (...,N) with M rows, bf16 or f32. Tensor cores need K contiguous in both. */
enum status shape_matmul_scaled(struct node *n, const struct type *in, const struct type *given,
                                struct type *out)
{
    char ta[TYPE_TEXT], tb[TYPE_TEXT];
    const struct type *a = &in[0], *b = &in[1];
    BUG_IF(!given, "a scaled matmul needs its type");
    /* Tensor cores support two e5m2 operands, but cuBLASLt does not. */
    bool both_wide = a->dtype == DT_E5M2 && b->dtype == DT_E5M2;
    bool fine = dtype_is_float8(a->dtype) && dtype_is_float8(b->dtype) && !both_wide &&
                a->rank == 2 && b->rank == 2 && a->dim[1] == b->dim[1] &&
                type_rows(given) == a->dim[0] && type_columns(given) == b->dim[0];
    if (!fine)
        return fail(ST_USAGE, "no scaled matmul of %s and %s", type_text(ta, a), type_text(tb, b));
    if (type_elements(&in[2]) != 1 || type_elements(&in[3]) != 1)
        return fail(ST_USAGE, "each operand needs one scale");
    if (n->n_in == 5 && (in[4].rank != 1 || in[4].dim[0] != b->dim[0]))
        return fail(ST_USAGE, "the bias needs %lld elements", (long long)b->dim[0]);
    out[0] = *given;
    n->n_out = 1;
    return ST_OK;
}

struct cost cost_matmul_scaled(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_move(n, in, out);
    double y = (double)type_elements(&out[0]);
    c.flops = 2.0 * y * (double)in[0].dim[1] + (n->n_in == 5 ? y : 0);
    return c;
}
