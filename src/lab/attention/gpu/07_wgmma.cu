/* 07_wgmma.cu - wgmma with a producer warp (FlashAttention 3, Shah et al. 2024).
 *
 * Two warpgroups have 64 queries each. A thread of a ninth warp starts TMA loads, which copy tiles
 * of 128 keys and values to a ring of two stages, ahead of their use. A warpgroup multiplies by
 * wgmma, which reads keys and values directly from shared memory; the scores are written to
 * registers, become probabilities there, and are the left operand of the second product. One
 * warpgroup can compute exponentials while the other multiplies.
 *
 * Strobe's own kernel goes further: its blocks are persistent and fetch work, the exponentials of a
 * tile overlap with the products of the tile before in the same warpgroup, the maximum is not
 * updated for every tile, and the output is stored through shared memory. */
#include "lab/attention/gpu/heads.cuh"
#include "hopper.cuh"
#include "rows.cuh"

enum {
    GROUPS = 2, QUERIES = 64 * GROUPS, KEYS = 128, STAGES = 2, ROW = 2 * D,
    Q_BYTES = QUERIES * ROW, TILE_BYTES = KEYS * ROW,
    AT_KEYS = Q_BYTES, AT_VALUES = AT_KEYS + STAGES * TILE_BYTES,
    Q_FULL = AT_VALUES + STAGES * TILE_BYTES, /* the barriers, 8 bytes each */
    K_FULL = Q_FULL + 8, K_EMPTY = K_FULL + 8 * STAGES,
    V_FULL = K_EMPTY + 8 * STAGES, V_EMPTY = V_FULL + 8 * STAGES,
};

/* A position in the ring: the stage, and whether the number of the round is odd. */
struct place {
    int stage, odd;
};
DEVICE void advance(place &p)
{
    if (++p.stage == STAGES) p.stage = 0, p.odd ^= 1;
}

/* Loads the queries, and the tiles of keys and values from the last to the first. In the input
 * matrix, `row` is the sequence's first token and `column` is where the head's q begins. */
DEVICE void produce(u32 shared, const tensor_map *x, int row, int column, int width, int i0,
                    int tiles)
{
    mbarrier_expect(shared + Q_FULL, Q_BYTES);
    tma_load(shared, x, shared + Q_FULL, column, row + i0, 0, 0, 0);
    place p = {0, 0};
#pragma unroll 1
    for (int tile = tiles - 1; tile >= 0; tile--, advance(p)) {
        u32 full = shared + K_FULL + 8 * p.stage, at = shared + AT_KEYS + p.stage * TILE_BYTES;
        mbarrier_wait(shared + K_EMPTY + 8 * p.stage, p.odd ^ 1); /* no wait in the first round */
        mbarrier_expect(full, TILE_BYTES);
        tma_load(at, x, full, column + width, row + tile * KEYS, 0, 0, 0);
        full = shared + V_FULL + 8 * p.stage, at = shared + AT_VALUES + p.stage * TILE_BYTES;
        mbarrier_wait(shared + V_EMPTY + 8 * p.stage, p.odd ^ 1);
        mbarrier_expect(full, TILE_BYTES);
        tma_load(at, x, full, column + 2 * width, row + tile * KEYS, 0, 0, 0);
    }
}

/* A thread's part of rows g and g + 8 of its warp, g = lane / 4; hopper.cuh has the layout. */
struct state {
    float top[2], sum[2], out[D / 2];
};

/* s = q k^T of this warpgroup's queries. */
DEVICE void scores(float (&s)[KEYS / 2], u32 queries, u32 keys)
{
    u64 a = wgmma_descriptor(queries, 16, 1024), b = wgmma_descriptor(keys, 16, 1024);
    wgmma_fence();
    UNROLL for (int j = 0; j < D / 16; j++)
        wgmma_ss<KEYS, false, false>(s, a + 2 * j, b + 2 * j, j > 0);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_hold(s);
}

/* Replaces the scores s by exponentials, and rescales and updates sums and outputs. The warpgroup's
 * first query attends to the first `seen` keys of the tile; with a causal mask, each next query
 * attends to one key more. */
DEVICE void softmax(state &r, float (&s)[KEYS / 2], int seen)
{
    constexpr float FACTOR = 0.125f * LOG2_E;
    int lane = threadIdx.x % WARP, g = threadIdx.x / WARP % 4 * 16 + lane / 4, c = lane % 4 * 2;
    if (seen < KEYS) /* else no key is masked */
        UNROLL for (int i = 0; i < KEYS / 2; i++)
            if (i / 4 * 8 + c + i % 2 >= seen + (CAUSAL ? g + i / 2 % 2 * 8 : 0))
                s[i] = -INFINITY_F;
    UNROLL for (int h = 0; h < 2; h++) {
        float most = r.top[h], all = 0;
        UNROLL for (int n = 0; n < KEYS / 8; n++)
            most = fmaxf(most, fmaxf(s[4 * n + 2 * h], s[4 * n + 2 * h + 1]));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
        float factor = ex2_approx((r.top[h] - most) * FACTOR), less = most * FACTOR;
        UNROLL for (int n = 0; n < KEYS / 8; n++)
            UNROLL for (int e = 4 * n + 2 * h; e < 4 * n + 2 * h + 2; e++) {
                s[e] = ex2_approx(s[e] * FACTOR - less);
                all += s[e];
            }
        UNROLL for (int n = 0; n < D / 8; n++)
            r.out[4 * n + 2 * h] *= factor, r.out[4 * n + 2 * h + 1] *= factor;
        r.sum[h] = r.sum[h] * factor + all;
        r.top[h] = most;
    }
}

/* out += p v; s contains p as floats. */
DEVICE void weighted(state &r, const float (&s)[KEYS / 2], u32 values)
{
    u64 b = wgmma_descriptor(values, TILE_BYTES, 1024);
    u32 p[KEYS / 16][4];
    UNROLL for (int j = 0; j < KEYS / 16; j++)
        UNROLL for (int i = 0; i < 4; i++)
            p[j][i] = pack_bf16(s[8 * j + 2 * i], s[8 * j + 2 * i + 1]);
    wgmma_fence();
    UNROLL for (int j = 0; j < KEYS / 16; j++)
        wgmma_rs<D, true>(r.out, p[j], b + j * 16 * ROW / 16, true);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_hold(r.out);
}

DEVICE void consume(state &r, u32 shared, int group, int seen, int tiles)
{
    bool leader = threadIdx.x % 128 == 0;
    UNROLL for (int h = 0; h < 2; h++) r.top[h] = LOWEST_F, r.sum[h] = 0;
    UNROLL for (int i = 0; i < D / 2; i++) r.out[i] = 0;
    mbarrier_wait(shared + Q_FULL, 0);
    place p = {0, 0};
#pragma unroll 1
    for (int tile = tiles - 1; tile >= 0; tile--, advance(p)) {
        float s[KEYS / 2];
        mbarrier_wait(shared + K_FULL + 8 * p.stage, p.odd);
        scores(s, shared + group * 64 * ROW, shared + AT_KEYS + p.stage * TILE_BYTES);
        if (leader) mbarrier_arrive(shared + K_EMPTY + 8 * p.stage);
        softmax(r, s, seen - tile * KEYS);
        mbarrier_wait(shared + V_FULL + 8 * p.stage, p.odd);
        weighted(r, s, shared + AT_VALUES + p.stage * TILE_BYTES);
        if (leader) mbarrier_arrive(shared + V_EMPTY + 8 * p.stage);
    }
}

KERNEL_MIN(288, 1)
attention(const __grid_constant__ tensor_map x_map, ELEMENT *y, const ELEMENT *, i64, i64 heads,
          i64 tokens)
{
    extern __shared__ __align__(1024) u8 memory[];
    u32 shared = shared_address(memory);
    int i0 = (gridDim.x - 1 - blockIdx.x) * QUERIES, head = blockIdx.y, width = (int)heads * D;
    int warp = __shfl_sync(~0u, threadIdx.x / WARP, 0), lane = threadIdx.x % WARP;
    int tiles = ((int)keys_of_all(i0, QUERIES, tokens) + KEYS - 1) / KEYS;
    if (threadIdx.x == 0) {
        mbarrier_init(shared + Q_FULL, 1);
        for (int s = 0; s < STAGES; s++) {
            mbarrier_init(shared + K_FULL + 8 * s, 1);
            mbarrier_init(shared + V_FULL + 8 * s, 1);
            mbarrier_init(shared + K_EMPTY + 8 * s, GROUPS);
            mbarrier_init(shared + V_EMPTY + 8 * s, GROUPS);
        }
        fence_barrier_init();
    }
    __syncthreads();
    if (warp == 4 * GROUPS) {
        int row = head / (int)heads * (int)tokens, column = head % (int)heads * D;
        if (lane == 0) produce(shared, &x_map, row, column, width, i0, tiles);
        return;
    }
    state r;
    consume(r, shared, warp / 4, (int)keys_of(i0 + 64 * (warp / 4), tokens), tiles);
    ELEMENT *to = result(y, head, i0, heads, tokens) + lane % 4 * 2;
    UNROLL for (int h = 0; h < 2; h++) {
        float sum = r.sum[h];
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        int row = warp * 16 + lane / 4 + 8 * h;
        if (i0 + row >= tokens) continue;
        UNROLL for (int n = 0; n < D / 8; n++)
            *(u32 *)(to + row * (i64)width + 8 * n) =
                pack_bf16(r.out[4 * n + 2 * h] / sum, r.out[4 * n + 2 * h + 1] / sum);
    }
}
