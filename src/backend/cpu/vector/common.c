#include "backend/cpu/vector/common.h"

enum status VEC(over_rows)(const struct kernel_call *c, int64_t weight, range_fn fn)
{
    const struct type *x = &c->in_type[0];
    parallel_ranges(c, type_rows(x), 1, weight * type_columns(x), fn);
    return ST_OK;
}
