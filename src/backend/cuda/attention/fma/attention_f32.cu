/* Attention over packed float q, k, v: (B,T,H+2*KV,HEAD) -> y (B,T,H,HEAD), log-sum-exp (B,H,T).
 *
 * FlashAttention-2 as in attention.cu, with FMAs. A block has 64 query rows of one head. 16 lanes
 * share eight of these rows, 8 apart, and each lane has every 16th key. Bound by the FMAs, 2 HEAD
 * for each row and key; q, k, v and the weights are in shared memory. HEAD: a multiple of 4, at
 * most 128; attention_f32_wide.cu has the larger sizes. */
#include "mma.cuh"

#define THREADS 128
#define ROWS 64
#define MINE 8                    /* rows of a thread: slot, slot + 8, ... */
#define EACH (KEYS / 16)          /* keys of a thread: lane, lane + 16, ... */
#define PAIRS ((HEAD + 31) / 32)  /* column pairs of a thread: 32u + 2 lane */
#define CHUNKS (PAIRS * 8)        /* of four floats, per row in shared memory */
#define TILE (KEYS * CHUNKS * 16) /* bytes */

struct drop {
    u32 seed, site, step, bh;
    int threshold;
};

/* Copies N rows, as copy_rows of attention.cu does; values are not swizzled. */
template <int N, bool SWIZZLED>
DEVICE void copy_rows(u32 to, const float *from, int stride, int there)
{
    int chunk = threadIdx.x % 8, row = threadIdx.x / 8;
    UNROLL for (int i = row; i < N; i += THREADS / 8)
        UNROLL for (int c = chunk; c < CHUNKS; c += 8) {
            bool full = i < there && c * 4 < HEAD;
            u32 at = SWIZZLED ? swizzle<CHUNKS>(i, c) : (u32)(i * CHUNKS + c) * 16;
            cp_async_16(to + at, full ? from + i * (i64)stride + c * 4 : from, full ? 16 : 0);
        }
}

DEVICE float4 chunk_of(const u8 *tile, int row, int chunk)
{
    return *(const float4 *)(tile + swizzle<CHUNKS>(row, chunk));
}
/* Index of four weights of a row. Adjacent slots' rows use different halves of the banks. */
DEVICE int weight_at(int row, int four)
{
    return row * KEYS + ((four ^ (row & 1) * 4) * 4);
}

/* s = q k^T */
DEVICE void scores(float (&s)[MINE][EACH], const u8 *q, const u8 *k)
{
    int lane = threadIdx.x % 16, slot = threadIdx.x / 16;
    UNROLL for (int i = 0; i < MINE; i++)
        UNROLL for (int j = 0; j < EACH; j++) s[i][j] = 0;
#pragma unroll 2
    for (int c = 0; c < (HEAD + 3) / 4; c++) {
        float4 b[EACH];
        UNROLL for (int j = 0; j < EACH; j++) b[j] = chunk_of(k, lane + 16 * j, c);
        UNROLL for (int i = 0; i < MINE; i++) {
            float4 a = chunk_of(q, slot + 8 * i, c);
            UNROLL for (int j = 0; j < EACH; j++) {
                s[i][j] += a.x * b[j].x;
                s[i][j] += a.y * b[j].y;
                s[i][j] += a.z * b[j].z;
                s[i][j] += a.w * b[j].w;
            }
        }
    }
}

/* o += p v */
DEVICE void add_values(float (&o)[MINE][PAIRS][2], const float *p, const u8 *v)
{
    int lane = threadIdx.x % 16, slot = threadIdx.x / 16;
#pragma unroll 2
    for (int k = 0; k < KEYS; k += 4) {
        float2 b[4][PAIRS];
        UNROLL for (int j = 0; j < 4; j++)
            UNROLL for (int u = 0; u < PAIRS; u++)
                b[j][u] = *(const float2 *)(v + ((k + j) * CHUNKS + 8 * u) * 16 + lane * 8);
        UNROLL for (int i = 0; i < MINE; i++) {
            float4 a = *(const float4 *)(p + weight_at(slot + 8 * i, k / 4));
            UNROLL for (int u = 0; u < PAIRS; u++) {
                o[i][u][0] += a.x * b[0][u].x, o[i][u][1] += a.x * b[0][u].y;
                o[i][u][0] += a.y * b[1][u].x, o[i][u][1] += a.y * b[1][u].y;
                o[i][u][0] += a.z * b[2][u].x, o[i][u][1] += a.z * b[2][u].y;
                o[i][u][0] += a.w * b[3][u].x, o[i][u][1] += a.w * b[3][u].y;
            }
        }
    }
}

/* Zeroes the dropped weights. A 4x4 set of a 16x16 block (rows 16 i ..., keys 16 j ...) belongs to
 * eight lanes of the warp, two rows each; each lane generates every eighth set. */
DEVICE void drop_weights(float (&s)[MINE][EACH], const drop &d, int row, int first)
{
    int lane = threadIdx.x % WARP, odd = lane / 16, a = (int)threadIdx.x / WARP, b = lane % 8 / 2;
    int rank = odd * 4 + lane / 8 % 2 * 2 + lane % 2;
    int shift = 8 * (lane / 8 % 2 * 2 + lane % 2);
    UNROLL for (int first_set = 0; first_set < MINE / 2 * EACH; first_set += 8) {
        int set = first_set + rank, i = set / EACH, j = set % EACH;
        words w =
            dropout_attention(d.seed, d.site, d.step, d.bh, row / 16 + i, first / 16 + j, a, b);
        UNROLL for (int t = 0; t < 8; t++) {
            int from = t / 4 * 16 + t / 2 % 2 * 8 + b * 2 + t % 2;
            u32 got[4];
            UNROLL for (int n = 0; n < 4; n++) got[n] = __shfl_sync(~0u, w.w[n], from);
            UNROLL for (int h = 0; h < 2; h++) {
                u32 byte = (odd ? got[2 * h + 1] : got[2 * h]) >> shift & 255;
                if ((int)byte < d.threshold)
                    s[(first_set + t) / EACH * 2 + h][(first_set + t) % EACH] = 0;
            }
        }
    }
}

/* Reductions over the 16 lanes that share rows; all of them get the result. */
DEVICE float half_max(float a)
{
    UNROLL for (int d = 8; d; d /= 2) a = fmaxf(a, __shfl_xor_sync(~0u, a, d));
    return a;
}
DEVICE float half_sum(float a)
{
    UNROLL for (int d = 8; d; d /= 2) a += __shfl_xor_sync(~0u, a, d);
    return a;
}

/* Blocks and arguments are those of attention.cu, except that dropout has its plain threshold. */
KERNEL_MIN(THREADS, 2)
attention_forward(const float *qkv, const int *step, float *y, float *lse, int T, int H, int BH,
                  int heads_at_once, float scale, u32 seed, u32 site, int threshold,
                  float keep_scale)
{
    extern __shared__ __align__(1024) u8 shared_memory[];
    u8 *q = shared_memory, *k = q + ROWS * CHUNKS * 16, *v = k + TILE;
    float *p = (float *)(v + TILE);
    int lane = threadIdx.x % 16, slot = threadIdx.x / 16;
    int row_blocks = ceil_div(T, ROWS);
    int section = (int)blockIdx.x / (heads_at_once * row_blocks),
        rest = (int)blockIdx.x % (heads_at_once * row_blocks);
    int heads_here = min(heads_at_once, BH - section * heads_at_once);
    int bh = section * heads_at_once + rest % heads_here,
        row = (row_blocks - 1 - rest / heads_here) * ROWS;
    int C = H / GROUP * HEAD, stride = (GROUP + 2) * C; /* columns of keys; of a row */
    int n = CAUSAL ? min(T, row + ROWS) : T; /* keys that the block sees */
    const float *head = qkv + (i64)(bh / H) * T * stride + bh % H * HEAD;
    const float *keys = head + GROUP * C - (bh % H - bh % H / GROUP) * HEAD, *values = keys + C;
    drop d = {seed, site, DROPOUT ? (u32)*step : 0, (u32)bh, threshold};
    float o[MINE][PAIRS][2] = {}, top[MINE], sum[MINE];
    UNROLL for (int i = 0; i < MINE; i++) {
        top[i] = 0.5f * LOWEST_F; /* finite also times LOG2_E */
        sum[i] = 0;
    }

    copy_rows<ROWS, true>(shared_address(q), head + (i64)row * stride, stride, T - row);
    copy_rows<KEYS, true>(shared_address(k), keys, stride, T);
    cp_async_commit();
    /* Goes through the keys upwards, so that every row sees a key of the first tile; the score of
     * that key may be -inf. */
#pragma unroll 1
    for (int key = 0; key < n; key += KEYS) {
        cp_async_wait<0>();
        __syncthreads();
        copy_rows<KEYS, false>(shared_address(v), values + (i64)key * stride, stride, T - key);
        cp_async_commit();
        float s[MINE][EACH];
        scores(s, q, k);
        __syncthreads();
        if (key + KEYS < n)
            copy_rows<KEYS, true>(shared_address(k), keys + (i64)(key + KEYS) * stride, stride,
                                  T - key - KEYS);
        cp_async_commit();
        UNROLL for (int i = 0; i < MINE; i++) {
            int seen = (CAUSAL ? row + slot + 8 * i + 1 : T) - key - lane;
            float max = -INFINITY_F;
            UNROLL for (int j = 0; j < EACH; j++) {
                if (16 * j >= seen) s[i][j] = -INFINITY_F;
                max = fmaxf(max, s[i][j]);
            }
            max = fmaxf(top[i], half_max(max));
            float factor = ex2_approx((top[i] - max) * scale), less = max * scale;
            top[i] = max;
            sum[i] *= factor;
            UNROLL for (int j = 0; j < EACH; j++) {
                s[i][j] = ex2_approx(s[i][j] * scale - less);
                sum[i] += s[i][j];
            }
            UNROLL for (int u = 0; u < PAIRS; u++) o[i][u][0] *= factor, o[i][u][1] *= factor;
        }
        if (DROPOUT) drop_weights(s, d, row, key);
        UNROLL for (int i = 0; i < MINE; i++)
            UNROLL for (int j = 0; j < EACH; j++)
                p[weight_at(slot + 8 * i, (lane + 16 * j) / 4) + lane % 4] = s[i][j];
        cp_async_wait<1>();
        __syncthreads();
        add_values(o, p, v);
    }
    UNROLL for (int i = 0; i < MINE; i++) {
        int t = row + slot + 8 * i;
        float all = half_sum(sum[i]), by = keep_scale / all;
        if (t >= T) continue;
        float *to = y + ((i64)(bh / H) * T + t) * (GROUP * C) + bh % H * HEAD;
        UNROLL for (int u = 0; u < PAIRS; u++)
            if (32 * u + 2 * lane < HEAD)
                *(float2 *)(to + 32 * u + 2 * lane) = make_float2(o[i][u][0] * by, o[i][u][1] * by);
        if (lane == 0) lse[(i64)bh * T + t] = (top[i] * scale + lg2_approx(all)) * LN_2;
    }
}
