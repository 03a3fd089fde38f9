/* CHAIN: fused pointwise operators (chain.h). */
#include "graph/chain.h"

#include "graph/build.h"
#include "graph/op_rules.h"

static const int operands[OP_COUNT] = {
    [OP_ADD] = 2,
    [OP_SUB] = 2,
    [OP_MUL] = 2,
    [OP_DIV] = 2,
    [OP_SCALE] = 1,
    [OP_OFFSET] = 1,
    [OP_AT_MOST] = 1,
    [OP_EXP] = 1,
    [OP_LOG] = 1,
    [OP_SQRT] = 1,
    [OP_RSQRT] = 1,
    [OP_TANH] = 1,
    [OP_ERF] = 1,
    [OP_CAST] = 1,
    [OP_GELU] = 1,
    [OP_GELU_GRAD] = 2,
    [OP_DROPOUT] = 2,
    [OP_RELU] = 1,
    [OP_WHERE_POSITIVE] = 2,
    [OP_WHERE_NOT_POSITIVE] = 2,
    [OP_ELU] = 1,
    [OP_ELU_GRAD] = 2,
    [OP_SILU] = 1,
    [OP_SILU_GRAD] = 2,
    [OP_SIGMOID] = 1,
};

int chain_operands(enum op op)
{
    return operands[op];
}

static bool is_float_operand(const struct chain_step *s, int i)
{
    return i < operands[s->op] && !(s->op == OP_DROPOUT && i == 1) &&
           s->operand[i].from != CHAIN_CONSTANT;
}

static enum dtype operand_dtype(const struct chain_operand *o, const struct type *in,
                                const enum dtype *result)
{
    return o->from == CHAIN_INPUT ? in[o->index].dtype : result[o->index];
}

void chain_dtypes(const struct chain *c, const struct type *in, enum dtype *ret_dtype)
{
    for (int k = 0; k < c->steps; k++) {
        const struct chain_step *s = &c->step[k];
        int i = !is_float_operand(s, 0); /* a constant has the type of the other operand */
        ret_dtype[k] = s->op == OP_CAST ? s->to : operand_dtype(&s->operand[i], in, ret_dtype);
    }
}

/* The type of the result of step k; `dtype` is from chain_dtypes. */
static struct type chain_type(const struct chain *c, const enum dtype *dtype, int k)
{
    struct type t = c->shape;
    t.dtype = dtype[k];
    return t;
}

/* True if the second operand of the operator may be broadcast. */
static bool broadcasts(enum op op)
{
    return op == OP_ADD || op == OP_SUB || op == OP_MUL || op == OP_DIV;
}

/* Checks an operand that is an input. It must have the chain's shape; the second operand of an
 * operator that broadcasts may be broadcast to that shape. */
static enum status check_input(const struct chain *c, const struct chain_step *s, int i,
                               const struct type *t)
{
    char a[TYPE_TEXT], b[TYPE_TEXT];
    enum broadcast how = type_broadcast(&c->shape, t);
    if (s->op == OP_DROPOUT && i == 1) {
        if (t->dtype == DT_I32 && type_elements(t) == 1) return ST_OK;
    } else if (dtype_is_float(t->dtype) &&
               (how == BROADCAST_NONE || (i == 1 && broadcasts(s->op) && how != BROADCAST_BAD))) {
        return ST_OK;
    }
    return fail(ST_USAGE, "%s of %s does not accept %s", op_def(s->op)->name,
                type_text(a, &c->shape), type_text(b, t));
}

/* Checks the operators and the sources of their operands, without types. */
static enum status check_program(const struct chain *c, int n_in)
{
    int dropouts = 0;
    for (int k = 0; k < c->steps; k++) {
        const struct chain_step *s = &c->step[k];
        const char *name = op_def(s->op)->name;
        if (!operands[s->op]) return fail(ST_USAGE, "%s cannot be a step of a chain", name);
        for (int i = 0; i < operands[s->op]; i++) {
            const struct chain_operand *o = &s->operand[i];
            int limit = o->from == CHAIN_INPUT ? n_in : k;
            if (o->from != CHAIN_CONSTANT && (o->index < 0 || o->index >= limit))
                return fail(ST_USAGE, "%s: operand %d does not exist", name, i);
        }
        if (!is_float_operand(s, 0) && !is_float_operand(s, 1))
            return fail(ST_USAGE, "%s has only constant operands", name);
        dropouts += s->op == OP_DROPOUT;
        if (s->op == OP_DROPOUT && s->attr.drop.pattern != DROPOUT_POINTWISE)
            return fail(ST_USAGE,
                        "a dropout in a chain must be pointwise, not of attention scores");
    }
    return dropouts <= CHAIN_DRAWS ? ST_OK : fail(ST_USAGE, "%d dropouts in one chain", dropouts);
}

static enum status check_types(const struct chain *c, const struct type *in,
                               const enum dtype *dtype)
{
    for (int k = 0; k < c->steps; k++) {
        const struct chain_step *s = &c->step[k];
        for (int i = 0; i < operands[s->op]; i++) {
            const struct chain_operand *o = &s->operand[i];
            if (o->from == CHAIN_INPUT) TRY(check_input(c, s, i, &in[o->index]));
            if (!is_float_operand(s, i) || s->op == OP_CAST) continue;
            if (operand_dtype(o, in, dtype) != dtype[k])
                return fail(ST_USAGE, "%s has operands of two types", op_def(s->op)->name);
        }
    }
    return ST_OK;
}

/* x, and tensors that have the shape of x or are broadcast to it -> up to CHAIN_OUTPUTS results of
 * the shape of x */
enum status shape_chain(struct node *n, const struct type *in, const struct type *,
                        struct type *out)
{
    const struct chain *c = n->attr.chain;
    enum dtype dtype[CHAIN_STEPS];
    BUG_IF(!c || c->steps < 1 || c->steps > CHAIN_STEPS, "a chain without steps or with too many");
    if (!dtype_is_float(in[0].dtype) || !type_same_shape(&in[0], &c->shape))
        return fail(ST_USAGE, "input 0 of a chain must have its shape");
    TRY(check_program(c, n->n_in));
    chain_dtypes(c, in, dtype);
    TRY(check_types(c, in, dtype));
    n->n_out = c->outputs;
    for (int i = 0; i < c->outputs; i++) out[i] = chain_type(c, dtype, c->output[i]);
    return ST_OK;
}

/* Appends the steps as separate operators, with constants as tensors. */
void expand_chain(struct graph *g, const struct node *n, const value *in, value *out)
{
    const struct chain *c = n->attr.chain;
    struct type type[MAX_IN];
    enum dtype dtype[CHAIN_STEPS];
    value result[CHAIN_STEPS] = {{0}};
    for (int i = 0; i < n->n_in; i++) type[i] = *graph_type(g, in[i]);
    chain_dtypes(c, type, dtype);
    for (int k = 0; k < c->steps; k++) {
        const struct chain_step *s = &c->step[k];
        const struct type t = chain_type(c, dtype, k);
        value from[2];
        for (int i = 0; i < operands[s->op]; i++) {
            const struct chain_operand *o = &s->operand[i];
            from[i] = o->from == CHAIN_INPUT ? in[o->index]
                      : o->from == CHAIN_RESULT
                          ? result[o->index]
                          : g_fill(g, i ? type_scalar(t.dtype) : t, o->constant);
        }
        result[k] = graph_add(g, s->op, &s->attr, operands[s->op], from, &t);
    }
    for (int i = 0; i < c->outputs; i++) out[i] = result[c->output[i]];
}

struct cost cost_chain(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_move(n, in, out);
    const struct chain *chain = n->attr.chain;
    for (int k = 0; k < chain->steps; k++) {
        const struct chain_step *s = &chain->step[k];
        struct node step = {.op = s->op, .attr = s->attr, .n_in = 1};
        c.flops += op_def(s->op)->cost(&step, &chain->shape, &chain->shape).flops;
    }
    return c;
}
