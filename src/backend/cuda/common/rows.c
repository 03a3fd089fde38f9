#include "backend/cuda/common/rows.h"

#include "base/rng.h"

enum { WARP = 32, MOST_THREADS = 1024, WARP_ROWS = 4 };

int row_lanes(int64_t columns, int64_t each)
{
    int64_t warps = ceil_div(columns, each * WARP);
    return warps * WARP > MOST_THREADS ? MOST_THREADS : (int)warps * WARP;
}

int row_access(enum dtype dtype, int64_t columns)
{
    int n = dtype == DT_BF16 ? 8 : 4;
    while (columns % n) n /= 2;
    return n;
}

struct cuda_launch *row_launch(struct cuda_launches *l, const char *text, const char *entry,
                               int64_t rows, int lanes)
{
    int together = lanes == WARP ? WARP_ROWS : 1;
    struct cuda_launch *k = launch_add(l, text, entry, ceil_div(rows, together), lanes * together);
    launch_define(k, "LANES", lanes);
    return k;
}

void row_define(struct cuda_launch *k, const struct type *x)
{
    launch_define_type(k, "T_X", x->dtype);
    launch_define(k, "COLUMNS", type_columns(x));
    launch_define(k, "EACH", row_access(x->dtype, type_columns(x)));
}

void arg_dropout(struct cuda_launch *k, const struct dropout *d)
{
    arg_u32(k, "seed", d->seed);
    arg_u32(k, "site", d->site);
    arg_i32(k, "threshold", d->threshold);
}

void arg_dropout_bytes(struct cuda_launch *k, const struct dropout *d)
{
    bool low = d->threshold <= 128;
    arg_u32(k, "seed", d->seed);
    arg_u32(k, "site", d->site);
    arg_u32(k, "less", (uint32_t)(low ? d->threshold : d->threshold - 128) * 0x01010101u);
    arg_u32(k, "carry", low ? UINT32_MAX : 0);
    arg_f32(k, "keep_scale", (double)dropout_scale(d->threshold));
}
