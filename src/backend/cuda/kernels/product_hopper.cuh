/* product_hopper.cuh - what texts of products by warpgroups share: stages, tiles, turns.
 *
 * The text says before: WARPGROUP, CONSUMERS, STAGES, ROWS and COLUMNS of a tile, and EMPTY, where the barriers of free stages are. */
#pragma once

/* Which stage is next, and in which phase its barriers are. */
struct ring {
    int stage, parity;
};
DEVICE void advance(ring &r)
{
    if (++r.stage == STAGES) r.stage = 0, r.parity ^= 1;
}
DEVICE void advance_by(ring &r, int n)
{
    n += r.stage;
    r.stage = n % STAGES;
    r.parity ^= n / STAGES & 1;
}
DEVICE u32 barrier_of(u32 barriers, const ring &r)
{
    return barriers + 8 * r.stage;
}

/* Tiles are counted through `group` of them down, then to the right. */
struct place {
    int row, column;
};
struct shape {
    int M, N, K, group;
};
DEVICE int over(int n, int by)
{
    return (n + by - 1) / by;
}
DEVICE int tiles_of(const shape &s)
{
    return over(s.M, ROWS) * over(s.N, COLUMNS);
}

DEVICE place place_of(int n, const shape &s)
{
    int down = over(s.M, ROWS), per = s.group * over(s.N, COLUMNS), first = n / per * s.group, rest = n % per;
    int high = min(down - first, s.group);
    return {(first + rest % high) * ROWS, rest / high * COLUMNS};
}

/* The descriptor of what lies `bytes` further: its lower half never carries. */
DEVICE u64 further(u64 descriptor, int bytes)
{
    return (descriptor & ~0xffffffffull) | (u32)((u32)descriptor + bytes / 16);
}
DEVICE void release(u32 base, int stage)
{
    u32 barrier = base + EMPTY + 8 * stage;
    if (threadIdx.x % WARPGROUP == 0) mbarrier_arrive(barrier);
}
/* A consumer starts its products when the other has started all of the tile before: a barrier's parity says nothing
 * to who is a whole phase ahead. */
DEVICE void await_turn(int w)
{
    named_barrier_sync(1 + w, CONSUMERS * WARPGROUP);
}
DEVICE void pass_turn(int w)
{
    named_barrier_arrive(2 - w, CONSUMERS * WARPGROUP);
}
