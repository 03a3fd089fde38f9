#include "backend/cpu/matmul/matmul.h"

struct matmul matmul_of(const struct kernel_call *c)
{
    bool linear = c->n_in > 2;
    bool ta = !linear && c->attr->matmul.ta, tb = linear ? c->attr->linear.tb : c->attr->matmul.tb;
    const struct type *a = &c->in_type[0], *b = &c->in_type[1];
    int64_t a_columns = type_columns(a), N = type_columns(&c->out_type[0]);
    bool packed = (linear ? c->attr->linear.packed : c->attr->matmul.packed) != 0;
    struct matmul p = {.batch = 1, .M = type_rows(a), .N = N, .K = a_columns};
    p.a_row = ta ? 1 : a_columns, p.a_column = ta ? a_columns : 1;
    p.b_row = tb ? 1 : N, p.b_column = tb ? a_columns : 1;
    p.bias = linear, p.packed = packed;
    p.type = a->dtype, p.result = c->out_type[0].dtype;
    if (ta || b->rank > 2) { /* a^T, or a batch of matrices */
        p.K = a->dim[a->rank - (ta ? 2 : 1)];
        p.M = a->dim[a->rank - (ta ? 1 : 2)];
        p.batch = type_elements(a) / (p.M * p.K);
        p.b_row = tb ? 1 : N;
        p.b_column = tb ? p.K : 1;
    }
    return p;
}

struct matmul matmul_of_pack(const struct kernel_call *c)
{
    bool tb = c->attr->pack.tb;
    const struct type *b = &c->in_type[0];
    int64_t K = b->dim[tb], N = b->dim[!tb];
    struct matmul p = {.batch = 1, .M = c->attr->pack.rows, .N = N, .K = K, .packed = true};
    p.a_row = K, p.a_column = 1;
    p.b_row = tb ? 1 : N, p.b_column = tb ? K : 1;
    p.type = p.result = b->dtype;
    return p;
}
