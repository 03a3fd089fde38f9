/* matmul_hopper.cuh - shared by the WGMMA matmuls: stages, tiles, turns of the consumers.
 *
 * a is (M,K) or, with A_TRANSPOSED, (K,M); b is (K,N) or, with B_TRANSPOSED, (N,K). Sources define
 * these, ALTERNATE, WARPGROUP, CONSUMERS, STAGES, DEPTH, PITCH, BLOCK, A_BYTES, STAGE_BYTES, ROWS
 * and COLUMNS of a tile, TILES of a consumer, and FULL and EMPTY, offsets of barriers. */
#pragma once

/* The next stage and the parity of its barriers. */
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

/* Tiles are numbered down through `group` tile rows, then to the right. */
struct position {
    int row, column;
};
struct shape {
    int M, N, K, group;
};
DEVICE int tiles_of(const shape &s)
{
    return ceil_div(s.M, ROWS) * ceil_div(s.N, COLUMNS);
}

DEVICE position position_of(int n, const shape &s)
{
    int down = ceil_div(s.M, ROWS), per = s.group * ceil_div(s.N, COLUMNS),
        first = n / per * s.group, rest = n % per;
    int high = min(down - first, s.group);
    return {(first + rest % high) * ROWS, rest / high * COLUMNS};
}

/* Moves a descriptor by `bytes`; the addition never carries into the upper half. */
DEVICE u64 advanced(u64 descriptor, int bytes)
{
    return (descriptor & ~0xffffffffull) | (u32)((u32)descriptor + bytes / 16);
}
DEVICE void release(u32 base, int stage)
{
    u32 barrier = base + EMPTY + 8 * stage;
    if (threadIdx.x % WARPGROUP == 0) mbarrier_arrive(barrier);
}
/* A consumer issues its WGMMAs after the other consumer has issued all WGMMAs of the previous tile,
 * because parity is ambiguous to a waiter that is a whole phase ahead. */
DEVICE void await_turn(int w)
{
    named_barrier_sync(1 + w, CONSUMERS * WARPGROUP);
}
DEVICE void pass_turn(int w)
{
    named_barrier_arrive(2 - w, CONSUMERS * WARPGROUP);
}

/* Called by one thread. */
DEVICE void load_stage(u32 to, u32 full, const tensor_map *a_map, const tensor_map *b_map,
                       position p, int k)
{
    mbarrier_expect(full, STAGE_BYTES);
    if (A_TRANSPOSED) {
        UNROLL for (int i = 0; i < ROWS / 64; i++)
            tma_load(to + i * BLOCK, a_map, full, p.row + 64 * i, k, 0, 0, 0);
    } else {
        tma_load(to, a_map, full, k, p.row, 0, 0, 0);
    }
    to += A_BYTES;
    if (B_TRANSPOSED) {
        tma_load(to, b_map, full, k, p.column, 0, 0, 0);
    } else {
        UNROLL for (int i = 0; i < COLUMNS / 64; i++)
            tma_load(to + i * BLOCK, b_map, full, p.column + 64 * i, k, 0, 0, 0);
    }
}

/* The matmul of one tile: one WGMMA group stays in flight while the next group is issued. `pass`:
 * the other consumer still has a tile. */
DEVICE void multiply(float (&sum)[TILES][COLUMNS / 2], u32 base, ring &r, int w, int steps,
                     bool pass)
{
    enum { A_NEXT = A_TRANSPOSED ? 16 * PITCH : 32, B_NEXT = B_TRANSPOSED ? 32 : 16 * PITCH };
    int before = 0;
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
        u32 at = base + r.stage * STAGE_BYTES;
        u64 a = wgmma_descriptor(at + (ALTERNATE ? 0 : w * TILES * BLOCK),
                                 A_TRANSPOSED ? BLOCK : 16, 8 * PITCH);
        u64 b = wgmma_descriptor(at + A_BYTES, B_TRANSPOSED ? 16 : BLOCK, 8 * PITCH);
        mbarrier_wait(barrier_of(base + FULL, r), r.parity);
        wgmma_fence();
        UNROLL for (int j = 0; j < DEPTH / 16; j++)
            UNROLL for (int t = 0; t < TILES; t++)
                wgmma_ss<COLUMNS, A_TRANSPOSED, !B_TRANSPOSED>(
                    sum[t], advanced(a, j * A_NEXT + t * BLOCK), advanced(b, j * B_NEXT),
                    k > 0 || j > 0);
        wgmma_commit();
        wgmma_wait<1>();
        if (k > 0) release(base, before);
        before = r.stage;
        advance(r);
    }
    if (pass) pass_turn(w);
    wgmma_wait<0>();
    UNROLL for (int t = 0; t < TILES; t++) wgmma_hold(sum[t]);
    release(base, before);
}
