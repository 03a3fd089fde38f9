#include "bench/call.h"

#include "bench/bench_step.h"

/* True if the attributes of a matmul are attr.linear; else they are attr.matmul. */
static bool is_linear(enum op op)
{
    return op == OP_LINEAR || op == OP_LINEAR_GELU;
}

/* "768 x 384 x 128 tb": M x N x K, with the batch size in front if it is not 1. */
static const char *matmul_shape(const struct kernel_call *c, enum op op, struct arena *a)
{
    const struct type *out = &c->out_type[0], *in = &c->in_type[0];
    bool ta = !is_linear(op) && c->attr->matmul.ta;
    bool tb = is_linear(op) ? c->attr->linear.tb : c->attr->matmul.tb;
    bool packed = is_linear(op) ? c->attr->linear.packed : c->attr->matmul.packed;
    bool many = c->in_type[1].rank > 2;
    int64_t N = type_columns(out), M = many ? out->dim[out->rank - 2] : type_rows(out);
    int64_t batch = type_rows(out) / M, K = in->dim[in->rank - (ta ? 2 : 1)];
    const char *text =
        arena_printf(a, "%lld x %lld x %lld%s%s%s", (long long)M, (long long)N, (long long)K,
                     ta ? " ta" : "", tb ? " tb" : "", packed ? " packed" : "");
    return batch == 1 ? text : arena_printf(a, "%lld of %s", (long long)batch, text);
}

/* The type of the largest tensor of the call, as text; if an input and an output are equally large,
 * that of the input. */
static const char *tensor_shape(const struct kernel_call *c, struct arena *a)
{
    const struct type *largest = c->n_in ? &c->in_type[0] : &c->out_type[0];
    for (int i = 1; i < c->n_in; i++)
        if (type_bytes(&c->in_type[i]) > type_bytes(largest)) largest = &c->in_type[i];
    for (int i = 0; i < c->n_out; i++)
        if (type_bytes(&c->out_type[i]) > type_bytes(largest)) largest = &c->out_type[i];
    char text[TYPE_TEXT];
    return arena_strdup(a, type_text(text, largest));
}

enum dtype call_dtype(const struct kernel_call *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (dtype_is_float(c->in_type[i].dtype)) return c->in_type[i].dtype;
    return c->out_type[0].dtype;
}

enum machine_precision call_precision(const struct kernel_call *c)
{
    return machine_precision(call_dtype(c), c->numerics.tf32);
}

const char *call_shape(enum op op, const struct kernel_call *c, struct arena *a)
{
    return matmuls_include(op) ? matmul_shape(c, op, a) : tensor_shape(c, a);
}
