#include "backend/cpu/cast.h"

#include "backend/cpu/cpu_kernels.h"

static double load(enum dtype dtype, const void *from, int64_t i)
{
    if (dtype == DT_F32) return (double)((const float *)from)[i];
    if (dtype == DT_F64) return ((const double *)from)[i];
    return bf16_load(((const uint16_t *)from)[i]);
}

static void store(enum dtype dtype, void *to, int64_t i, double x)
{
    if (dtype == DT_F32) ((float *)to)[i] = (float)x;
    if (dtype == DT_F64) ((double *)to)[i] = x;
    if (dtype == DT_BF16) ((uint16_t *)to)[i] = bf16_store(x);
}

static bool fits_cast(const struct kernel_call *c)
{
    return dtype_is_float(c->in_type[0].dtype) && dtype_is_float(c->out_type[0].dtype);
}

/* Every number of either narrow type is a double, so one loop serves all pairs. */
static enum status run_cast(const struct kernel_call *c)
{
    enum dtype from = c->in_type[0].dtype, to = c->out_type[0].dtype;
    for (int64_t i = 0; i < type_elements(&c->out_type[0]); i++)
        store(to, c->out[0], i, load(from, c->in[0], i));
    return ST_OK;
}

const struct kernel cast_kernels[] = {
    {.op = OP_CAST, .variant = "ref", .fits = fits_cast, .run = run_cast},
    {.run = NULL},
};
