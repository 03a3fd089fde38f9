#include "lab/formula_graph.h"

#include "graph/build.h"
#include "pass/pass.h"

#include <math.h>
#include <string.h>

enum { POWER_MOST = 16 };

struct builder {
    const struct formula *f;
    const double *constant; /* per node: its value, valid if the node does not depend on a tensor */
    const bool *varies;     /* per node: whether the node depends on a tensor */
    const bool *risky; /* per node: whether a value or slope in its operands may be inf or NaN */
    struct graph *g;
    struct type type;
    value tensor[FORMULA_TENSORS]; /* the values of x, y and z; in a choice they may be masked */
    bool too_long;                 /* the graph has too many nodes; build() then returns `any` */
    value any;
};

const char *formula_tensor_name(int i, bool gradient)
{
    static const char *const names[2][FORMULA_TENSORS] = {{"x", "y", "z"}, {"dx", "dy", "dz"}};
    return names[gradient][i];
}

/* --- analysis of the tree --------------------------------------------------------------------- */

static bool is_comparison(enum formula_kind k)
{
    return k >= FORMULA_LESS && k <= FORMULA_GREATER_EQUAL;
}

/* Whether products, a division and a square root suffice to compute the power with exponent c. */
static bool is_power(double c)
{
    double magnitude = fabs(c);
    return magnitude == 0.5 ||
           (magnitude >= 1 && magnitude <= POWER_MOST && magnitude == floor(magnitude));
}

static enum status check_node(const struct formula *f, int at, const bool *varies,
                              const double *constant)
{
    const struct formula_node *n = &f->node[at];
    if (!varies[at] && !isfinite((float)constant[at]))
        return formula_fail(f->text, n->at, "this constant is not a finite float: it is %g",
                            constant[at]);
    if (!varies[at]) return ST_OK;
    if (n->kind == FORMULA_DIV && !varies[n->arg[1]] && !isfinite((float)(1 / constant[n->arg[1]])))
        return formula_fail(
            f->text, n->at,
            "this divides by the constant %g, which has no finite float as its reciprocal",
            constant[n->arg[1]]);
    if (n->kind != FORMULA_POW) return ST_OK;
    const struct formula_node *exponent = &f->node[n->arg[1]];
    if (varies[n->arg[1]])
        return formula_fail(
            f->text, exponent->at,
            "the exponent of pow must be a constant; pow(a, b) is also exp(b * log(a))");
    if (!is_power(constant[n->arg[1]]))
        return formula_fail(f->text, exponent->at,
                            "the exponent of pow must be 0.5, -0.5 or a whole number from -%d to "
                            "%d but not 0; found %g",
                            POWER_MOST, POWER_MOST, constant[n->arg[1]]);
    return ST_OK;
}

static bool is_risky(const struct formula_node *n, const bool *varies)
{
    switch (n->kind) {
    case FORMULA_EXP:
    case FORMULA_LOG:
    case FORMULA_SQRT:
    case FORMULA_RSQRT:
    case FORMULA_POW:
        return true;
    case FORMULA_DIV:
        return varies[n->arg[1]];
    default:
        return false;
    }
}

/* Fills the three arrays of a builder. */
static void examine(const struct formula *f, const double *values, double *constant, bool *varies,
                    bool *risky)
{
    formula_values(f, values, constant);
    for (int i = 0; i < f->nodes; i++) {
        const struct formula_node *n = &f->node[i];
        varies[i] = n->kind == FORMULA_NAME && n->name < FORMULA_TENSORS;
        risky[i] = false;
        for (int k = 0; k < n->args; k++) {
            varies[i] |= varies[n->arg[k]];
            risky[i] |= risky[n->arg[k]];
        }
        risky[i] |= varies[i] && is_risky(n, varies);
    }
}

/* Whether operand k of node n is used. A where with a constant condition uses only one of its two
 * values. */
static bool takes(const struct formula_node *n, int k, const bool *varies, const double *constant)
{
    if (n->kind != FORMULA_WHERE || varies[n->arg[0]]) return true;
    return k == (constant[n->arg[0]] > 0 ? 1 : 2);
}

enum status formula_check(const struct formula *f, const double *values, struct formula_uses *ret)
{
    double constant[FORMULA_BYTES];
    bool varies[FORMULA_BYTES], risky[FORMULA_BYTES];
    bool reached[FORMULA_BYTES] = {false}, sloped[FORMULA_BYTES] = {false};
    *ret = (struct formula_uses){0};
    examine(f, values, constant, varies, risky);
    reached[f->nodes - 1] = sloped[f->nodes - 1] = true;
    for (int i = f->nodes - 1; i >= 0; i--) {
        const struct formula_node *n = &f->node[i];
        if (!reached[i]) continue;
        TRY(check_node(f, i, varies, constant));
        for (int k = 0; k < n->args && varies[i]; k++) {
            if (!takes(n, k, varies, constant)) continue;
            reached[n->arg[k]] = true;
            bool condition = is_comparison(n->kind) || (n->kind == FORMULA_WHERE && k == 0);
            sloped[n->arg[k]] |= sloped[i] && !condition;
        }
        if (n->kind != FORMULA_NAME || !varies[i]) continue;
        ret->tensors |= 1u << n->name;
        if (sloped[i]) ret->slopes |= 1u << n->name;
    }
    if (!ret->tensors)
        return formula_fail(f->text, 0, "the formula is the constant %g; it must use x, y or z",
                            constant[f->nodes - 1]);
    return ST_OK;
}

/* --- the tree as a graph ---------------------------------------------------------------------- */

static value build(struct builder *b, int at);

/* A tensor of one constant, for operators whose first operand cannot be a constant. */
static value filled(const struct builder *b, double x)
{
    return g_fill(b->g, b->type, x);
}

static value value_of(struct builder *b, int at)
{
    return b->varies[at] ? build(b, at) : filled(b, b->constant[at]);
}

static value offset(const struct builder *b, value x, double c)
{
    return c == 0 ? x : g_offset(b->g, x, c);
}

static value scaled(const struct builder *b, value x, double c)
{
    return c == 1 ? x : g_scale(b->g, x, c);
}

static value sum(struct builder *b, int i, int k)
{
    if (!b->varies[k]) return offset(b, build(b, i), b->constant[k]);
    if (!b->varies[i]) return offset(b, build(b, k), b->constant[i]);
    value x = build(b, i);
    return g_add(b->g, x, build(b, k));
}

static value difference(struct builder *b, int i, int k)
{
    if (!b->varies[k]) return offset(b, build(b, i), -b->constant[k]);
    if (!b->varies[i]) return offset(b, scaled(b, build(b, k), -1), b->constant[i]);
    value x = build(b, i);
    return g_sub(b->g, x, build(b, k));
}

static value product(struct builder *b, int i, int k)
{
    if (!b->varies[k]) return scaled(b, build(b, i), b->constant[k]);
    if (!b->varies[i]) return scaled(b, build(b, k), b->constant[i]);
    value x = build(b, i);
    return g_mul(b->g, x, build(b, k));
}

static value quotient(struct builder *b, int i, int k)
{
    if (!b->varies[k]) return scaled(b, build(b, i), 1 / b->constant[k]);
    value x = value_of(b, i);
    return g_div(b->g, x, build(b, k));
}

/* Integer powers are computed by repeated squaring. */
static value power(struct builder *b, value x, double exponent)
{
    if (exponent == 0.5) return g_sqrt(b->g, x);
    if (exponent == -0.5) return g_rsqrt(b->g, x);
    value y = {0};
    for (int n = (int)fabs(exponent); n; n /= 2) {
        if (n % 2) y = y.i ? g_mul(b->g, y, x) : x;
        if (n > 1) x = g_mul(b->g, x, x);
    }
    return exponent < 0 ? g_div(b->g, filled(b, 1), y) : y;
}

/* --- choices ---------------------------------------------------------------------------------- */

/* A condition holds where d > 0 or, with `otherwise`, where not d > 0. */
struct condition {
    value d;
    bool otherwise;
};

static struct condition condition_of(struct builder *b, int at)
{
    const struct formula_node *n = &b->f->node[at];
    bool otherwise = n->kind == FORMULA_LESS_EQUAL || n->kind == FORMULA_GREATER_EQUAL;
    bool rising = n->kind == FORMULA_LESS || n->kind == FORMULA_GREATER_EQUAL;
    if (!is_comparison(n->kind)) return (struct condition){build(b, at), false};
    int low = n->arg[!rising], high = n->arg[rising]; /* a < b: b - a > 0; a <= b: not a - b > 0 */
    return (struct condition){difference(b, high, low), otherwise};
}

static value kept(const struct builder *b, value x, const struct condition *c)
{
    return c->otherwise ? g_where_not_positive(b->g, x, c->d) : g_where_positive(b->g, x, c->d);
}

/* Node `at` where the condition holds, and 0 elsewhere; `no value` if the node is the constant 0. A
 * risky node reads tensors that are 0 where the condition does not hold. Masking only the node's
 * result would not suffice, because the gradient would multiply 0 by an infinite slope, which is
 * NaN. */
static value side(struct builder *b, int at, const struct condition *c)
{
    if (!b->varies[at] && b->constant[at] == 0) return (value){0};
    value outer[FORMULA_TENSORS];
    memcpy(outer, b->tensor, sizeof outer);
    if (b->risky[at])
        for (int i = 0; i < FORMULA_TENSORS; i++)
            if (outer[i].i) b->tensor[i] = kept(b, outer[i], c);
    value x = value_of(b, at);
    memcpy(b->tensor, outer, sizeof outer);
    return kept(b, x, c);
}

static value choice(struct builder *b, const struct condition *c, int yes, int no)
{
    const struct condition other = {c->d, !c->otherwise};
    value x = side(b, yes, c), y = side(b, no, &other);
    return !x.i && !y.i ? filled(b, 0) : !x.i ? y : !y.i ? x : g_add(b->g, x, y);
}

/* A comparison as a number: 1 if true, else 0. */
static value indicator(struct builder *b, int at)
{
    const struct condition c = condition_of(b, at);
    return kept(b, filled(b, 1), &c);
}

/* min(a, b) is where(a < b, a, b), max(a, b) where(a < b, b, a). */
static value extreme(struct builder *b, const struct formula_node *n)
{
    bool max = n->kind == FORMULA_MAX;
    const struct condition c = {difference(b, n->arg[1], n->arg[0]), false};
    return choice(b, &c, n->arg[max], n->arg[!max]);
}

static value where(struct builder *b, const struct formula_node *n)
{
    if (!b->varies[n->arg[0]]) return value_of(b, n->arg[b->constant[n->arg[0]] > 0 ? 1 : 2]);
    const struct condition c = condition_of(b, n->arg[0]);
    return choice(b, &c, n->arg[1], n->arg[2]);
}

/* --- functions -------------------------------------------------------------------------------- */

/* |x| is x where x > 0, minus x elsewhere. */
static value absolute(struct builder *b, value x)
{
    value positive = g_where_positive(b->g, x, x);
    return g_sub(b->g, positive, g_where_not_positive(b->g, x, x));
}

static value function(struct builder *b, const struct formula_node *n)
{
    static value (*const plain[FORMULA_KINDS])(struct graph *, value) = {
        [FORMULA_EXP] = g_exp,         [FORMULA_LOG] = g_log,   [FORMULA_SQRT] = g_sqrt,
        [FORMULA_RSQRT] = g_rsqrt,     [FORMULA_TANH] = g_tanh, [FORMULA_ERF] = g_erf,
        [FORMULA_RELU] = g_relu,       [FORMULA_ELU] = g_elu,   [FORMULA_SILU] = g_silu,
        [FORMULA_SIGMOID] = g_sigmoid,
    };
    value x = build(b, n->arg[0]);
    if (n->kind == FORMULA_NEGATE) return scaled(b, x, -1);
    if (n->kind == FORMULA_GELU || n->kind == FORMULA_GELU_TANH)
        return g_gelu(b->g, x, n->kind == FORMULA_GELU_TANH);
    if (n->kind == FORMULA_ABS) return absolute(b, x);
    if (n->kind == FORMULA_POW) return power(b, x, b->constant[n->arg[1]]);
    BUG_IF(!plain[n->kind], "formula: no operator for %s", formula_kind_name(n->kind));
    return plain[n->kind](b->g, x);
}

/* Appends the graph of node `at`, which depends on a tensor. */
static value build(struct builder *b, int at)
{
    const struct formula_node *n = &b->f->node[at];
    if (b->too_long || b->g->nodes > FORMULA_OPERATORS) {
        b->too_long = true;
        return b->any;
    }
    switch (n->kind) {
    case FORMULA_NAME:
        return b->tensor[n->name];
    case FORMULA_ADD:
        return sum(b, n->arg[0], n->arg[1]);
    case FORMULA_SUB:
        return difference(b, n->arg[0], n->arg[1]);
    case FORMULA_MUL:
        return product(b, n->arg[0], n->arg[1]);
    case FORMULA_DIV:
        return quotient(b, n->arg[0], n->arg[1]);
    case FORMULA_MIN:
    case FORMULA_MAX:
        return extreme(b, n);
    case FORMULA_WHERE:
        return where(b, n);
    default:
        return is_comparison(n->kind) ? indicator(b, at) : function(b, n);
    }
}

/* --- the graph -------------------------------------------------------------------------------- */

/* Appends the graph of the whole formula, which computes in the builder's type and returns
 * `dtype`. */
static value formula_of(struct builder *b, const value *leaf, enum dtype dtype)
{
    for (int i = 0; i < FORMULA_TENSORS; i++) {
        if (!leaf[i].i) continue;
        b->any = b->tensor[i] = g_cast(b->g, leaf[i], b->type.dtype);
    }
    value y = g_cast(b->g, value_of(b, b->f->nodes - 1), dtype);
    bool is_tensor = graph_producer(b->g, y)->op == OP_LEAF;
    return is_tensor ? g_scale(b->g, y, 1) : y; /* the formula "x" needs a copy */
}

static enum status add_gradient(struct graph *g, value y, value df, const value *leaf,
                                unsigned slopes)
{
    value wrt[FORMULA_TENSORS], d[FORMULA_TENSORS];
    int of[FORMULA_TENSORS], n = 0;
    for (int i = 0; i < FORMULA_TENSORS; i++)
        if (slopes >> i & 1) of[n] = i, wrt[n++] = leaf[i];
    TRY(graph_differentiate(g, y, df, n, wrt, d));
    for (int i = 0; i < n; i++) graph_output(g, formula_tensor_name(of[i], true), d[i]);
    return ST_OK;
}

static enum status run_pass(const char *name, struct graph *g, const struct pass_options *o)
{
    struct graph out;
    TRY(pass_run(pass_find(name), g, &out, o));
    *g = out;
    return ST_OK;
}

enum status formula_graph(const struct formula *f, const double *values,
                          const struct formula_shape *s, struct graph *g, struct arena *a)
{
    double constant[FORMULA_BYTES];
    bool varies[FORMULA_BYTES], risky[FORMULA_BYTES];
    struct formula_uses uses;
    struct pass_options o = {.rung = s->fused ? RUNG_FULL : RUNG_OP};
    struct builder b = {.f = f, .constant = constant, .varies = varies, .risky = risky, .g = g};
    value leaf[FORMULA_TENSORS] = {{0}}, df;
    const struct type type = type_1d(s->dtype, s->n);
    int64_t stride = round_up(s->n, RANGE_ALIGNMENT), at = 0;
    TRY(formula_check(f, values, &uses));
    examine(f, values, constant, varies, risky);
    graph_init(g, a);
    b.type = type_1d(s->fused ? DT_F32 : s->dtype, s->n);
    for (int i = 0; i < FORMULA_TENSORS; i++) {
        if (!(uses.tensors >> i & 1)) continue;
        leaf[i] = g_leaf(g, STORAGE_WEIGHTS, formula_tensor_name(i, false), type, at);
        at += stride;
    }
    struct graph_scope top = graph_enter(g, "f", -1);
    value y = formula_of(&b, leaf, s->dtype);
    graph_output(g, "f", y);
    TRY(graph_status(g));
    if (b.too_long)
        return fail(ST_USAGE, "the formula needs more than %d operators; shorten it",
                    FORMULA_OPERATORS);
    if (s->gradient && uses.slopes) {
        g->phase = PHASE_BACKWARD;
        df = g_leaf_named(g, STORAGE_WEIGHTS, "df", type, at);
        if (s->fused) y = formula_of(&b, leaf, s->dtype); /* the backward pass recomputes y */
        TRY(graph_status(g));
        TRY(add_gradient(g, y, df, leaf, uses.slopes));
    }
    graph_leave(g, top);
    TRY(graph_verify(g));
    TRY(passes_run(BEFORE_GRADIENT, g, &o, NULL));
    /* The pass `fuse` does not run: its patterns are those of the layers of a model. */
    TRY(run_pass("chain", g, &o));
    return run_pass("dead", g, &o);
}
