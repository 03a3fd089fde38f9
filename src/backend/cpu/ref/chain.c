/* The reference kernel of CHAIN (fused pointwise operators): for each element, runs the steps of
 * the chain in order, in double; the result of each step is rounded to the step's type. */
#include "graph/chain.h"

#include "backend/cpu/cpu_kernels.h"
#include "backend/cpu/ref/cast.h"
#include "backend/cpu/ref/functions.h"
#include "backend/cpu/ref/ref.h"

struct state {
    const struct kernel_call *call;
    const struct chain *chain;
    enum dtype dtype[CHAIN_STEPS];
    double result[CHAIN_STEPS]; /* of each step, for the current element */
};

/* Operand `which` of step k for element i. */
static double operand(const struct state *r, int k, int which, int64_t i)
{
    const struct chain_operand *o = &r->chain->step[k].operand[which];
    if (o->from == CHAIN_RESULT) return r->result[o->index];
    if (o->from == CHAIN_CONSTANT) return float_rounded(r->dtype[k], o->constant);
    const struct type *t = &r->call->in_type[o->index], *shape = &r->chain->shape;
    int64_t at =
        broadcast_index(type_broadcast(shape, t), i, type_columns(shape), type_elements(t));
    return float_load(t->dtype, r->call->in[o->index], at);
}

static double apply(const struct state *r, int k, int64_t i)
{
    static double (*const functions[OP_COUNT])(double, double) = {
        [OP_ADD] = add,
        [OP_SUB] = sub,
        [OP_MUL] = mul,
        [OP_DIV] = divide,
        [OP_SCALE] = mul,
        [OP_OFFSET] = add,
        [OP_AT_MOST] = at_most,
        [OP_EXP] = exp_of,
        [OP_LOG] = log_of,
        [OP_SQRT] = sqrt_of,
        [OP_RSQRT] = rsqrt_of,
        [OP_TANH] = tanh_of,
        [OP_SIGMOID] = sigmoid_of,
        [OP_ERF] = erf_of,
        [OP_RELU] = relu,
        [OP_WHERE_POSITIVE] = where_positive,
        [OP_WHERE_NOT_POSITIVE] = where_not_positive,
        [OP_ELU] = elu,
        [OP_ELU_GRAD] = elu_grad,
        [OP_SILU] = silu_of,
        [OP_SILU_GRAD] = silu_grad,
    };
    const struct chain_step *s = &r->chain->step[k];
    double a = operand(r, k, 0, i);
    switch (s->op) {
    case OP_CAST:
        return a;
    case OP_GELU:
        return gelu(a, s->attr.gelu.tanh);
    case OP_GELU_GRAD:
        return a * gelu_derivative(operand(r, k, 1, i), s->attr.gelu.tanh);
    case OP_DROPOUT:
        return a * keep_pointwise(&s->attr.drop, r->call->in[s->operand[1].index], i);
    default:
        BUG_IF(!functions[s->op], "%s cannot be part of a chain", op_def(s->op)->name);
        return functions[s->op](a, chain_operands(s->op) > 1 ? operand(r, k, 1, i)
                                                             : s->attr.constant.value);
    }
}

static enum status run(const struct kernel_call *c)
{
    struct state r = {.call = c, .chain = c->attr->chain};
    chain_dtypes(r.chain, c->in_type, r.dtype);
    for (int64_t i = 0; i < type_elements(&r.chain->shape); i++) {
        for (int k = 0; k < r.chain->steps; k++)
            r.result[k] = float_rounded(r.dtype[k], apply(&r, k, i));
        for (int o = 0; o < c->n_out; o++)
            float_store(c->out_type[o].dtype, c->out[o], i, r.result[r.chain->output[o]]);
    }
    return ST_OK;
}

const struct kernel chain_kernels[] = {
    {.op = OP_CHAIN, .variant = "ref", .run = run},
    {.run = NULL},
};
