/* Attention over packed q, k, v: qkv (B,T,H+2*KV,HEAD) -> y (B,T,H,HEAD), log-sum-exp (B,H,T)
 * float. Query head h uses key and value head h / GROUP; KV is H / GROUP, so a row has (GROUP + 2)
 * KV heads. T_X: bf16, or float rounded to tf32 for mma.
 *
 * FlashAttention-2 (Dao, arXiv 2307.08691) on mma.sync. A block has 16 * TILES * WARPS query rows
 * of one head, a warp 16 * TILES. A block walks over tiles of KEYS keys, from the last tile that
 * its rows see to the first. The T x T matrices exist in registers only, a tile at a time. Bound by
 * the tensor cores and, at HEAD <= 64, equally by the exponentials. Reads and writes at most 4 HEAD
 * elements a row, as rows and heads that run concurrently share their keys in L2.
 *
 *   GROUP, CAUSAL, DROPOUT, KEEP_Q (q stays in registers), BLOCKS (that must fit on an SM)
 *
 * Softmax: `top` is subtracted from the exponents. A warp raises `top` to the rows' maxima only
 * when the terms of a row would exceed 2^8, so the output is seldom rescaled. Such terms do no
 * harm: float can hold their sums, and the precision of bf16 is relative. `top` starts at the
 * lowest finite number because scores may be -inf, and -inf - -inf is NaN. */
#include "mma.cuh"
#include "attention_random.cuh"

/* Rows of 16-byte chunks in shared memory; an odd number of chunks is padded with zeros. A step is
 * the depth of one mma: 16 bf16 or 8 tf32, two chunks in both cases. */
#define BYTES ((int)sizeof(T_X))
#define EACH (16 / BYTES)
#define CHUNKS ((HEAD * BYTES + 31) / 32 * 2)
#define STEPS (CHUNKS / 2)
#define COLUMNS (CHUNKS * EACH / 8) /* 8-column tiles of the output */
#define THREADS (32 * WARPS)
#define ROWS (16 * TILES)
#define GRAIN swizzle_width(CHUNKS)

static_assert(HEAD % EACH == 0 && KEYS % 32 == 0, "");
static_assert(!CAUSAL || KEYS % ROWS == 0, "a row would see no key of its last tile");

/* State of a warp's rows, as mma fragments; index [h] or [.. / 2]: row g + 8h. */
struct rows {
    float o[TILES][COLUMNS][4];
    float top[TILES][2], sum[TILES][2];
    u32 q[TILES][KEEP_Q ? STEPS : 1][4];
    int first; /* the warp's first row */
};

DEVICE void multiply_add(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    if (BYTES == 2)
        mma_m16n8k16(d, a, b0, b1);
    else
        mma_m16n8k8_tf32(d, a, b0, b1);
}

/* Copies N rows of one head, `stride` elements apart; unless WHOLE, rows from `there` on are 0. */
template <int N, bool WHOLE> DEVICE void copy_rows(u32 to, const T_X *from, int stride, int there)
{
    constexpr int STEP = THREADS / GRAIN; /* rows per pass */
    int chunk = threadIdx.x % GRAIN, row = threadIdx.x / GRAIN;
    u32 at = to + swizzle<CHUNKS>(row, chunk);
    const T_X *p = from + (i64)row * stride + chunk * EACH;
    UNROLL for (int i = 0; i < ceil_div(N, STEP); i++) {
        if (N % STEP && row + i * STEP >= N) break;
        bool read = WHOLE || row + i * STEP < there;
        UNROLL for (int c = 0; c < CHUNKS; c += GRAIN) {
            bool full = read && (c + chunk) * EACH < HEAD;
            cp_async_16(at + (i * STEP * CHUNKS + c) * 16,
                        full ? p + i * STEP * (i64)stride + c * EACH : from, full ? 16 : 0);
        }
    }
}
/* Copies keys and values of a tile; C: columns of all key heads. */
template <bool WHOLE> DEVICE void copy_keys(u32 to, const T_X *k, int C, int first, int T)
{
    k += (i64)first * ((GROUP + 2) * C);
    copy_rows<KEYS, WHOLE>(to, k, (GROUP + 2) * C, T - first);
    copy_rows<KEYS, WHOLE>(to + KEYS * CHUNKS * 16, k + C, (GROUP + 2) * C, T - first);
    cp_async_commit();
}
/* Rounds to tf32 the chunks of N rows that this thread copied, once for all warps. */
template <int N> DEVICE void round_rows(u8 *tile)
{
    constexpr int STEP = THREADS / GRAIN;
    int chunk = threadIdx.x % GRAIN, row = threadIdx.x / GRAIN;
    u8 *at = tile + swizzle<CHUNKS>(row, chunk);
    UNROLL for (int i = 0; i < ceil_div(N, STEP); i++) {
        if (N % STEP && row + i * STEP >= N) break;
        UNROLL for (int c = 0; c < CHUNKS; c += GRAIN) {
            uint4 *p = (uint4 *)(at + (i * STEP * CHUNKS + c) * 16), a = *p;
            a.x = cvt_rna_tf32(__uint_as_float(a.x)), a.y = cvt_rna_tf32(__uint_as_float(a.y));
            a.z = cvt_rna_tf32(__uint_as_float(a.z)), a.w = cvt_rna_tf32(__uint_as_float(a.w));
            *p = a;
        }
    }
}

/* Moves a thread's address `at`, of chunk 0 or 1 of a row, by `chunk` chunks (an even number). */
DEVICE u32 chunk_at(u32 at, int chunk)
{
    return (at ^ (chunk % GRAIN * 16)) + chunk / GRAIN * GRAIN * 16;
}

/* s = q k^T */
DEVICE void scores(float (&s)[TILES][KEYS / 8][4], const rows &r, u32 q_at, u32 k_at)
{
    UNROLL for (int m = 0; m < TILES; m++)
        UNROLL for (int n = 0; n < KEYS / 8; n++)
            UNROLL for (int i = 0; i < 4; i++) s[m][n][i] = 0;
    UNROLL for (int d = 0; d < STEPS; d++) {
        u32 q[TILES][4];
        UNROLL for (int m = 0; m < TILES; m++)
            if (KEEP_Q) {
                UNROLL for (int i = 0; i < 4; i++) q[m][i] = r.q[m][KEEP_Q ? d : 0][i];
            } else
                ldmatrix_x4(q[m], chunk_at(q_at, 2 * d) + m * 256 * CHUNKS);
        UNROLL for (int n = 0; n < KEYS / 16; n++) {
            u32 k[4];
            ldmatrix_x4(k, chunk_at(k_at, 2 * d) + n * 256 * CHUNKS);
            UNROLL for (int m = 0; m < TILES; m++) {
                multiply_add(s[m][2 * n], q[m], k[0], k[1]);
                multiply_add(s[m][2 * n + 1], q[m], k[2], k[3]);
            }
        }
    }
}

/* Sets the scores that a row does not see to -inf; `first` is the tile's first key. */
DEVICE void mask_scores(float (&s)[TILES][KEYS / 8][4], const rows &r, int first, int T)
{
    int lane = threadIdx.x % WARP;
    UNROLL for (int m = 0; m < TILES; m++)
        UNROLL for (int i = 0; i < 4; i++) {
            int row = r.first + 16 * m + lane / 4 + i / 2 * 8;
            int seen = (CAUSAL ? row + 1 : T) - first - lane % 4 * 2 - i % 2;
            UNROLL for (int n = 0; n < KEYS / 8; n++)
                if (8 * n >= seen) s[m][n][i] = -INFINITY_F;
        }
}

/* If the maximum of any row exceeds `top` by too much, sets `top` of all rows of the warp to their
 * maxima, and rescales sums and outputs. */
DEVICE void lift_top(rows &r, const float (&s)[TILES][KEYS / 8][4], float scale)
{
    float max[TILES][2];
    bool far = false;
    UNROLL for (int m = 0; m < TILES; m++)
        UNROLL for (int h = 0; h < 2; h++) {
            float a = fmaxf(s[m][0][2 * h], s[m][0][2 * h + 1]);
            UNROLL for (int n = 1; n < KEYS / 8; n++)
                a = fmaxf(a, fmaxf(s[m][n][2 * h], s[m][n][2 * h + 1]));
            a = fmaxf(a, __shfl_xor_sync(~0u, a, 1));
            max[m][h] = fmaxf(a, __shfl_xor_sync(~0u, a, 2));
            far |= (max[m][h] - r.top[m][h]) * scale > 8;
        }
    if (!__any_sync(~0u, far)) return;
    UNROLL for (int m = 0; m < TILES; m++)
        UNROLL for (int h = 0; h < 2; h++) {
            float top = fmaxf(max[m][h], r.top[m][h]),
                  factor = ex2_approx((r.top[m][h] - top) * scale);
            r.top[m][h] = top;
            r.sum[m][h] *= factor;
            UNROLL for (int n = 0; n < COLUMNS; n++)
                r.o[m][n][2 * h] *= factor, r.o[m][n][2 * h + 1] *= factor;
        }
}

/* Returns exp2(scale s - less) of columns 2q, 2q+1 of a row, and adds them to the row's sum. */
DEVICE float2 exponentials(const float *s, float scale, float less, float &sum)
{
    float2 e = make_float2(ex2_approx(s[0] * scale - less), ex2_approx(s[1] * scale - less));
    sum += e.x + e.y;
    return e;
}
/* Fragment p of the 32 / BYTES keys of step k. In bf16 s has the fragment's layout. In tf32 key 2q
 * is at position q and key 2q+1 at position q+4, as in the fragment of the values. */
DEVICE void weights(u32 (&p)[4], rows &r, int m, const float (&s)[KEYS / 8][4], int k, float scale,
                    const float (&less)[2], const drop &d, const drop_bytes &bytes)
{
    if (BYTES == 2) {
        UNROLL for (int i = 0; i < 4; i++) {
            float2 e =
                exponentials(&s[2 * k + i / 2][i % 2 * 2], scale, less[i % 2], r.sum[m][i % 2]);
            p[i] = pack_bf16(e.x, e.y);
            if (DROPOUT)
                drop_pair(p[i], dropout_kept(bytes.w[k % 2][i % 2], d.less, d.carry), i >= 2);
        }
    } else {
        UNROLL for (int h = 0; h < 2; h++) {
            float2 e = exponentials(&s[k < KEYS / 8 ? k : 0][2 * h], scale, less[h], r.sum[m][h]);
            p[h] = cvt_rna_tf32(e.x), p[h + 2] = cvt_rna_tf32(e.y);
            if (DROPOUT) {
                u32 keep = dropout_kept(bytes.w[k / 2 % 2][h], d.less, d.carry);
                p[h] &= prmt(keep, 0, k % 2 ? 0xaaaa : 0x8888),
                    p[h + 2] &= prmt(keep, 0, k % 2 ? 0xbbbb : 0x9999);
            }
        }
    }
}

/* o += exp2(scale (s - top)) v; adds up the exponentials, too. v: offset in shared memory. */
DEVICE void add_values(rows &r, const float (&s)[TILES][KEYS / 8][4], u8 *shared, u32 v,
                       float scale, const drop &d, int first)
{
    constexpr int STEP = 32 / BYTES; /* keys */
    int lane = threadIdx.x % WARP;
    u32 at = shared_address(shared) + v + swizzle<CHUNKS>(lane % 16, lane / 16);
    u32 even = v + swizzle<CHUNKS>(lane % 4 * 2, lane / 16) + lane / 4 % 4 * 4;
    u32 odd = v + swizzle<CHUNKS>(lane % 4 * 2 + 1, lane / 16) + lane / 4 % 4 * 4;
    float less[TILES][2];
    drop_bytes bytes[TILES];
    UNROLL for (int m = 0; m < TILES; m++)
        UNROLL for (int h = 0; h < 2; h++) less[m][h] = r.top[m][h] * scale;
    UNROLL for (int k = 0; k < KEYS / STEP; k++) {
        u32 p[TILES][4];
        UNROLL for (int m = 0; m < TILES; m++) {
            if (DROPOUT && k * STEP % 32 == 0)
                bytes[m] = random_bytes(d, r.first / 16 + m, (first + k * STEP) / 16);
            weights(p[m], r, m, s[m], k, scale, less[m], d, bytes[m]);
        }
        if (BYTES == 2) {
            UNROLL for (int n = 0; n < STEPS; n++) {
                u32 w[4];
                ldmatrix_x4_trans(w, chunk_at(at, 2 * n) + k * 256 * CHUNKS);
                UNROLL for (int m = 0; m < TILES; m++) {
                    multiply_add(r.o[m][2 * n % COLUMNS], p[m], w[0], w[1]);
                    multiply_add(r.o[m][(2 * n + 1) % COLUMNS], p[m], w[2], w[3]);
                }
            }
        } else {
            UNROLL for (int n = 0; n < COLUMNS; n++) {
                u32 w0 = *(u32 *)(shared + chunk_at(even, 2 * n) + k * 128 * CHUNKS);
                u32 w1 = *(u32 *)(shared + chunk_at(odd, 2 * n) + k * 128 * CHUNKS);
                UNROLL for (int m = 0; m < TILES; m++) multiply_add(r.o[m][n], p[m], w0, w1);
            }
        }
    }
}

/* y = o / sum through the warp's part of shared memory, in whole chunks; log-sum-exp. */
DEVICE void finish(rows &r, u8 *stage, T_X *y, float *lse, int C, int T, float scale, float factor)
{
    int lane = threadIdx.x % WARP;
    UNROLL for (int m = 0; m < TILES; m++)
        UNROLL for (int h = 0; h < 2; h++) {
            float sum = r.sum[m][h];
            sum += __shfl_xor_sync(~0u, sum, 1);
            sum += __shfl_xor_sync(~0u, sum, 2);
            float by = factor / sum;
            int row = 16 * m + lane / 4 + 8 * h;
            UNROLL for (int n = 0; n < COLUMNS; n++) {
                int byte = n * 8 * BYTES + lane % 4 * 2 * BYTES;
                floats<2> two = {{r.o[m][n][2 * h] * by, r.o[m][n][2 * h + 1] * by}};
                store<2>((T_X *)(stage + swizzle<CHUNKS>(row, byte / 16) + byte % 16), two);
            }
            if (lane % 4 == 0 && r.first + row < T)
                lse[r.first + row] = (r.top[m][h] * scale + lg2_approx(sum)) * LN_2;
        }
    __syncwarp();
    UNROLL for (int i = lane; i < ROWS * CHUNKS; i += WARP) {
        int row = i / CHUNKS, chunk = i % CHUNKS;
        if (r.first + row < T && chunk * EACH < HEAD)
            *(uint4 *)(y + (i64)(r.first + row) * C + chunk * EACH) =
                *(uint4 *)(stage + swizzle<CHUNKS>(row, chunk));
    }
}

/* Blocks process `heads_at_once` heads at a time, so that the keys and values of these heads fit
 * into L2. Blocks whose rows have the most keys come first. bh: head b*H+h; row: the block's first
 * row. */
struct position {
    int bh, row;
};
DEVICE position position_of_block(int T, int BH, int heads_at_once)
{
    int row_blocks = ceil_div(T, ROWS * WARPS);
    int section = (int)blockIdx.x / (heads_at_once * row_blocks),
        rest = (int)blockIdx.x % (heads_at_once * row_blocks);
    int heads_here = min(heads_at_once, BH - section * heads_at_once);
    position a = {section * heads_at_once + rest % heads_here,
                  (row_blocks - 1 - rest / heads_here) * ROWS * WARPS};
    return a;
}

/* scale includes log2(e); less and carry: see dropout_kept; keep_scale: factor of kept elements. */
KERNEL_MIN(THREADS, BLOCKS)
attention_forward(const T_X *qkv, const int *step, T_X *y, float *lse, int T, int H, int BH,
                  int heads_at_once, float scale, u32 seed, u32 site, u32 less, u32 carry,
                  float keep_scale)
{
    extern __shared__ __align__(1024) u8 shared_memory[];
    constexpr int TILE = KEYS * CHUNKS * 16; /* bytes; memory has k, v of two stages, then q */
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    position at = position_of_block(T, BH, heads_at_once);
    int bh = at.bh, row = at.row;
    int C = H / GROUP * HEAD; /* columns of keys */
    const T_X *head = qkv + (i64)(bh / H) * T * (GROUP + 2) * C + bh % H * HEAD;
    const T_X *keys = head + GROUP * C - (bh % H - bh % H / GROUP) * HEAD;
    drop d = {seed, site, DROPOUT ? (u32)*step : 0, (u32)bh, less, carry};

    rows r;
    r.first = row + warp * ROWS;
    UNROLL for (int m = 0; m < TILES; m++) {
        r.top[m][0] = r.top[m][1] = 0.5f * LOWEST_F; /* finite also times LOG2_E */
        r.sum[m][0] = r.sum[m][1] = 0;
        UNROLL for (int n = 0; n < COLUMNS; n++)
            r.o[m][n][0] = r.o[m][n][1] = r.o[m][n][2] = r.o[m][n][3] = 0;
    }

    /* Keys before `last` are read; keys before `unmasked` need no mask. */
    int last = CAUSAL ? min(T, row + ROWS * WARPS) : T;
    int unmasked = (CAUSAL ? min(T, row + 1) : T) / KEYS * KEYS;
    int key = (last - 1) / KEYS * KEYS;
    u32 base = shared_address(shared_memory), stage = 0;
    u32 q_at = base + 4 * TILE + swizzle<CHUNKS>(warp * ROWS + lane % 16, lane / 16);
    u32 k_at = base + swizzle<CHUNKS>(lane % 8 + lane / 16 * 8, lane / 8 % 2);
    copy_rows<ROWS * WARPS, false>(base + 4 * TILE, head + (i64)row * (GROUP + 2) * C,
                                   (GROUP + 2) * C, T - row);
    cp_async_commit();
    copy_keys<false>(base, keys, C, key, T);
    if (KEEP_Q || BYTES == 4) {
        cp_async_wait<1>();
        if (BYTES == 4) round_rows<ROWS * WARPS>(shared_memory + 4 * TILE);
        __syncthreads();
    }
    if (KEEP_Q)
        UNROLL for (int m = 0; m < TILES; m++)
            UNROLL for (int i = 0; i < (KEEP_Q ? STEPS : 0); i++)
                ldmatrix_x4(r.q[m][i], chunk_at(q_at, 2 * i) + m * 256 * CHUNKS);
#pragma unroll 1
    for (; key >= 0; key -= KEYS) {
        cp_async_wait<0>();
        if (BYTES == 4)
            round_rows<KEYS>(shared_memory + stage), round_rows<KEYS>(shared_memory + stage + TILE);
        __syncthreads();
        if (key)
            copy_keys<true>(base + (stage ^ 2 * TILE), keys,
                            GROUP > 1 ? opaque(H) / GROUP * HEAD : C, key - KEYS, T);
        if (r.first < T && (!CAUSAL || key < r.first + ROWS)) {
            float s[TILES][KEYS / 8][4];
            scores(s, r, q_at, k_at + stage);
            if (key >= unmasked) mask_scores(s, r, key, T);
            lift_top(r, s, scale);
            add_values(r, s, shared_memory, stage + TILE, scale, d, key);
        }
        stage ^= 2 * TILE;
    }
    /* No other warp reads this warp's rows of q, so y may overwrite them. bh is recomputed,
     * because that saves a register. */
    if (GROUP > 1) bh = position_of_block(opaque(T), BH, opaque(heads_at_once)).bh;
    if (r.first < T)
        finish(r, shared_memory + 4 * TILE + warp * ROWS * CHUNKS * 16,
               y + (i64)(bh / H) * T * (GROUP * C) + bh % H * HEAD, lse + (i64)bh * T, GROUP * C, T,
               scale, keep_scale);
}
