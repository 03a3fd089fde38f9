#include "backend/cpu/vector/common.h"

bool VEC(all_f32)(const struct kernel_call *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (c->in_type[i].dtype != DT_F32 && c->in_type[i].dtype != DT_I32) return false;
    for (int i = 0; i < c->n_out; i++)
        if (c->out_type[i].dtype != DT_F32) return false;
    return true;
}

enum status VEC(over_rows)(const struct kernel_call *c, int64_t weight, range_fn fn)
{
    const struct type *x = &c->in_type[0];
    parallel_ranges(c, type_rows(x), 1, weight * type_columns(x), fn);
    return ST_OK;
}
