#include "backend/cpu/product.h"

struct product product_of(const struct kernel_call *c)
{
    bool linear = c->n_in > 2;
    bool ta = !linear && c->attr->matmul.ta, tb = linear ? c->attr->linear.tb : c->attr->matmul.tb;
    const struct type *a = &c->in_type[0], *b = &c->in_type[1];
    int64_t a_columns = type_columns(a), b_columns = type_columns(b);
    struct product p = {
        .batch = 1,
        .M = type_rows(a),
        .N = type_columns(&c->out_type[0]),
        .K = a_columns,
        .a_row = ta ? 1 : a_columns,
        .a_column = ta ? a_columns : 1,
        .b_row = tb ? 1 : b_columns,
        .b_column = tb ? b_columns : 1,
        .bias = linear,
    };
    if (ta || b->rank > 2) { /* matrix by matrix */
        p.K = a->dim[a->rank - (ta ? 2 : 1)];
        p.M = a->dim[a->rank - (ta ? 1 : 2)];
        p.batch = type_elements(a) / (p.M * p.K);
    }
    return p;
}

bool product_is_f32(const struct kernel_call *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (c->in_type[i].dtype != DT_F32) return false;
    return c->out_type[0].dtype == DT_F32;
}
