/* attention_hopper_sums.cu - the kernels before and after attention_hopper_dqkv.cu; without SUMS,
 * the kernel before attention_hopper_dq.cu for wide heads.
 *
 * attention_hopper_rows: dy, y (B,T,C), log-sum-exp (B,H,T) -> stats (B,H,tiles of 64,2,64) float:
 * the log-sum-exp times log2 e, infinite from T on, and delta = rowsum(dy y). SUMS: zeroes dq's
 * sums and the item counter. attention_hopper_convert: scaled dq -> the first C columns of dqkv.
 *
 * Sums of dq are stored in pieces of 64 rows by 64 columns, (B,H,tiles,HEAD_SIZE / 64), as a
 * warpgroup of 128 threads holds them: float i of thread t at 512 (i / 4) + 4 t + i % 4. A block
 * has a tile of 64 rows of a head. Bound by memory: 4 bytes an element read and 4 written, then 4
 * read and 2 written. Constants: HEAD_SIZE, 64 or 128 with SUMS, 192 or 256 without; heads of D
 * columns are padded with zeros. */
#include "hopper.cuh"

enum {
    ROWS = 64, THREADS = 256, CHUNKS = HEAD_SIZE / 8, /* of 16 bytes */
    LANES = CHUNKS & -CHUNKS, TIMES = CHUNKS / LANES, /* per row; chunks of a lane */
    EACH = ROWS * LANES / THREADS,                    /* rows of a lane */
    PIECES = HEAD_SIZE / 64, PIECE = 64 * 64,
};

DEVICE float dot(const uint4 &a, const uint4 &b)
{
    const u32 x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
    float sum = 0;
    UNROLL for (int i = 0; i < 4; i++)
        sum += __uint_as_float(x[i] << 16) * __uint_as_float(y[i] << 16) +
               __uint_as_float(x[i] & 0xffff0000u) * __uint_as_float(y[i] & 0xffff0000u);
    return sum;
}

KERNEL(THREADS)
attention_hopper_rows(const bf16 *dy, const bf16 *y, const float *lse, float *stats, float *dq,
                      int *counter, int T, int H, int D, int tiles)
{
    dependents_start();
    int tile = blockIdx.x % tiles, head = blockIdx.x / tiles, b = head / H,
        lane = threadIdx.x % LANES;
    uint4 a[EACH][TIMES], e[EACH][TIMES];
    UNROLL for (int i = 0; i < EACH; i++)
        UNROLL for (int k = 0; k < TIMES; k++) {
            int t = tile * ROWS + (i * THREADS + threadIdx.x) / LANES,
                column = (k * LANES + lane) * 8;
            a[i][k] = e[i][k] = make_uint4(0, 0, 0, 0);
            if (t >= T || column >= D) continue;
            i64 at = ((i64)(b * (i64)T + t) * H + head % H) * D + column;
            a[i][k] = *(const uint4 *)(dy + at), e[i][k] = *(const uint4 *)(y + at);
        }
#if SUMS
    if (blockIdx.x == 0 && threadIdx.x == 0) *counter = 0;
    float4 *sums = (float4 *)(dq + (i64)blockIdx.x * PIECES * PIECE);
    UNROLL for (int i = 0; i < PIECES * PIECE / 4 / THREADS; i++)
        sums[i * THREADS + threadIdx.x] = make_float4(0, 0, 0, 0);
#endif
    UNROLL for (int i = 0; i < EACH; i++) {
        int row = (i * THREADS + threadIdx.x) / LANES, t = tile * ROWS + row;
        float delta = 0;
        UNROLL for (int k = 0; k < TIMES; k++) delta += dot(a[i][k], e[i][k]);
        UNROLL for (int d = LANES / 2; d; d /= 2) delta += __shfl_xor_sync(~0u, delta, d);
        float *to = stats + (i64)blockIdx.x * 2 * ROWS + row;
        if (lane == 0) to[0] = t < T ? lse[(i64)head * T + t] * LOG2_E : INFINITY_F;
        if (lane == 0) to[ROWS] = delta;
    }
}

#if SUMS
/* Transposes among four lanes: w[i] of lane q becomes w[q] of lane i. */
DEVICE void transpose_four(u32 (&w)[4], int lane)
{
    UNROLL for (int d = 1; d < 4; d *= 2)
        UNROLL for (int i = 0; i < 2; i++) {
            int low = d == 1 ? 2 * i : i, high = low + d;
            u32 other = __shfl_xor_sync(~0u, lane & d ? w[low] : w[high], d);
            if (lane & d)
                w[low] = other;
            else
                w[high] = other;
        }
}

/* Each half of the threads processes one of two pieces, or half of a single piece. */
KERNEL(THREADS)
attention_hopper_convert(const float *dq, bf16 *dqkv, float scale, int T, int H, int D, int pitch,
                         int tiles)
{
    enum { OF = 4 * PIECES }; /* 8x8 tiles of columns */
    dependents_wait();
    int tile = blockIdx.x % tiles, head = blockIdx.x / tiles, b = head / H,
        half = threadIdx.x / 128, thread = threadIdx.x % 128;
    int piece = PIECES == 2 ? half : 0, from = PIECES == 2 ? 0 : half * OF, lane = thread % 4;
    const float4 *sums =
        (const float4 *)(dq + ((i64)blockIdx.x * PIECES + piece) * PIECE) + from * 128 + thread;
    float4 f[OF];
    UNROLL for (int i = 0; i < OF; i++) f[i] = sums[i * 128];
    UNROLL for (int i = 0; i < OF; i += 4)
        UNROLL for (int down = 0; down < 2; down++) {
            u32 w[4];
            UNROLL for (int k = 0; k < 4; k++)
                w[k] = down ? pack_bf16(f[i + k].z * scale, f[i + k].w * scale)
                            : pack_bf16(f[i + k].x * scale, f[i + k].y * scale);
            transpose_four(w, lane);
            int t = tile * ROWS + thread / WARP * 16 + thread % WARP / 4 + 8 * down,
                column = piece * 64 + (from + i + lane) * 8;
            if (t < T && column < D)
                *(uint4 *)(dqkv + (i64)(b * (i64)T + t) * pitch + head % H * D + column) =
                    make_uint4(w[0], w[1], w[2], w[3]);
        }
}
#endif
