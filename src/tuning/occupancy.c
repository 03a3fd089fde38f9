#include "tuning/occupancy.h"

#include <math.h>

enum { PARTS = 4, REGISTER_UNIT = 256, REGISTERS = 1 << 16 };
enum { THREAD_REGISTERS_MOST = 255, BLOCK_THREADS_MOST = 1024 };

#define KIB(n) ((n)*INT64_C(1024))

static const struct occupancy_limits limits[] = {
    {70, REGISTERS, 64, 32, KIB(96), KIB(96), 0, 256},
    {75, REGISTERS, 32, 16, KIB(64), KIB(64), 0, 256},
    {80, REGISTERS, 64, 32, KIB(164), KIB(163), KIB(1), 128},
    {86, REGISTERS, 48, 16, KIB(100), KIB(99), KIB(1), 128},
    {87, REGISTERS, 48, 16, KIB(164), KIB(163), KIB(1), 128},
    {89, REGISTERS, 48, 24, KIB(100), KIB(99), KIB(1), 128},
    {90, REGISTERS, 64, 32, KIB(228), KIB(227), KIB(1), 128},
    {100, REGISTERS, 64, 32, KIB(228), KIB(227), KIB(1), 128},
    {120, REGISTERS, 48, 24, KIB(100), KIB(99), KIB(1), 128},
};

const struct occupancy_limits *occupancy_limits(int arch)
{
    for (int i = 0; i < COUNT_OF(limits); i++)
        if (limits[i].arch == arch) return &limits[i];
    return NULL;
}

static int64_t by_threads(const struct occupancy_limits *l, const struct occupancy_kernel *k)
{
    int64_t warps = ceil_div(k->threads, OCCUPANCY_WARP);
    return k->threads > BLOCK_THREADS_MOST ? 0 : l->warps / warps;
}

static int64_t by_registers(const struct occupancy_limits *l, const struct occupancy_kernel *k)
{
    int64_t warps = ceil_div(k->threads, OCCUPANCY_WARP);
    int64_t of_warp = round_up((int64_t)k->registers * OCCUPANCY_WARP, REGISTER_UNIT);
    if (of_warp == 0) return l->blocks;
    if (k->registers > THREAD_REGISTERS_MOST) return 0;
    return l->registers / PARTS / of_warp * PARTS / warps;
}

static int64_t by_shared(const struct occupancy_limits *l, const struct occupancy_kernel *k)
{
    int64_t used = k->static_bytes + k->dynamic_bytes;
    int64_t allocated = round_up(used + l->reserved_bytes, l->shared_unit);
    if (used > l->block_shared_bytes) return 0;
    return allocated ? l->shared_bytes / allocated : l->blocks;
}

void occupancy_of(const struct occupancy_limits *l, const struct occupancy_kernel *k,
                  struct occupancy *ret)
{
    BUG_IF(k->threads < 1, "a block of %d threads", k->threads);
    const struct {
        const char *name;
        int64_t blocks;
    } all[] = {{"blocks", l->blocks},
               {"threads", by_threads(l, k)},
               {"registers", by_registers(l, k)},
               {"shared memory", by_shared(l, k)}};
    int least = 0;
    for (int i = 1; i < COUNT_OF(all); i++)
        if (all[i].blocks < all[least].blocks) least = i;
    ret->blocks = (int)all[least].blocks;
    ret->warps = ret->blocks * (int)ceil_div(k->threads, OCCUPANCY_WARP);
    ret->limit = all[least].name;
}

void occupancy_grid(const struct occupancy *o, int64_t blocks, int processors,
                    struct occupancy_grid *ret)
{
    double places = (double)o->blocks * processors, waves = (double)blocks / places;
    *ret = (struct occupancy_grid){NAN, NAN};
    if (o->blocks == 0) return;
    ret->waves = waves;
    ret->tail = ceil(waves) - waves;
}
