#include "backend/cpu/ref/cast.h"

#include "backend/cpu/cpu_kernels.h"

static bool fits_cast(const struct kernel_call *c)
{
    return dtype_is_float(c->in_type[0].dtype) && dtype_is_float(c->out_type[0].dtype);
}

/* A double represents every number of each type exactly, so one loop serves all pairs of types. */
static enum status run_cast(const struct kernel_call *c)
{
    enum dtype from = c->in_type[0].dtype, to = c->out_type[0].dtype;
    int64_t n = type_elements(&c->out_type[0]);
    for (int64_t i = 0; i < n; i++) float_store(to, c->out[0], i, float_load(from, c->in[0], i));
    return ST_OK;
}

const struct kernel cast_kernels[] = {
    {.op = OP_CAST, .variant = "ref", .fits = fits_cast, .run = run_cast},
    {.run = NULL},
};
