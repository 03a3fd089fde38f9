/* attention_grad_plain.cu - the backward of attention for every type and head size: what fits where nothing else does.
 *
 * dy (B,T,C), qkv (B,T,3C), y (B,T,C), log-sum-exp (B,H,T) -> delta (B,H,T), dqkv (B,T,3C). A warp for each row of each
 * head: its elements, 32 apart, are in registers, and the other rows pass by, read through the caches by every warp anew;
 * that is what bounds it. Constants: HEAD_SIZE, T_X, CAUSAL, DROPOUT. */
#include "device.cuh"

typedef T_X element;
enum { D = HEAD_SIZE, EACH = (D + WARP - 1) / WARP, WARPS = 4, THREADS = WARPS * WARP };

DEVICE i64 row_of_warp()
{
    return (i64)blockIdx.x * WARPS + threadIdx.x / WARP;
}
DEVICE void load_row(float (&a)[EACH], const element *row)
{
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int i = 0; i < EACH; i++) a[i] = lane + i * WARP < D ? to_float(row[lane + i * WARP]) : 0;
}
DEVICE void store_row(element *row, const float (&a)[EACH], float scale)
{
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (lane + i * WARP < D) row[lane + i * WARP] = to<element>(a[i] * scale);
}
/* The product of a row in registers with one in memory; all lanes have it. */
DEVICE float times(const float (&a)[EACH], const element *row)
{
    int lane = threadIdx.x % WARP;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (lane + i * WARP < D) sum += a[i] * to_float(row[lane + i * WARP]);
    return warp_sum(sum);
}
DEVICE void add_row(float (&sum)[EACH], float factor, const element *row)
{
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (lane + i * WARP < D) sum[i] += factor * to_float(row[lane + i * WARP]);
}
DEVICE void clear(float (&a)[EACH])
{
#pragma unroll
    for (int i = 0; i < EACH; i++) a[i] = 0;
}
/* What the probability of (q,k) is multiplied with. */
DEVICE float keep_scale(u32 seed, u32 site, u32 step, u32 bh, u32 q, u32 k, int threshold)
{
    words r = dropout_attention(seed, site, step, bh, q / 16, k / 16, q % 8 / 2, k % 8 / 2);
    u32 low = q % 2 ? r.w[1] : r.w[0], high = q % 2 ? r.w[3] : r.w[2];
    u32 byte = (q % 16 < 8 ? low : high) >> (8 * (k % 16 / 8 * 2 + k % 2)) & 255;
    return (int)byte >= threshold ? dropout_scale(threshold) : 0;
}

/* delta = rowsum(dy y) */
KERNEL(THREADS) attention_grad_delta(const element *dy, const element *y, float *delta, i64 rows, int T, int H)
{
    i64 row = row_of_warp(), bh = row / T, at = ((bh / H * T + row % T) * H + bh % H) * D;
    if (row >= rows) return;
    float a[EACH];
    load_row(a, dy + at);
    float sum = times(a, y + at);
    if (threadIdx.x % WARP == 0) delta[row] = sum;
}

KERNEL(THREADS)
attention_grad_queries(const element *dy, const element *qkv, const float *lse, const float *delta, const int *step,
                       element *dqkv, float scale, i64 rows, int T, int H, u32 seed, u32 site, int threshold)
{
    i64 row = row_of_warp(), bh = row / T, pitch = 3ll * H * D;
    if (row >= rows) return;
    int t = (int)(row % T);
    const element *head = qkv + bh / H * T * pitch + bh % H * D;
    float q[EACH], dout[EACH], dq[EACH], row_lse = lse[row], row_delta = delta[row];
    load_row(q, head + t * pitch);
    load_row(dout, dy + ((bh / H * T + t) * H + bh % H) * D);
    clear(dq);
    for (int k = 0; k < (CAUSAL ? t + 1 : T); k++) {
        const element *key = head + k * pitch + H * D;
        float p = expf(times(q, key) * scale - row_lse), dp = times(dout, key + H * D);
        if (DROPOUT) dp *= keep_scale(seed, site, *step, (u32)bh, t, k, threshold);
        add_row(dq, p * (dp - row_delta), key);
    }
    store_row(dqkv + (head - qkv) + t * pitch, dq, scale);
}

KERNEL(THREADS)
attention_grad_keys(const element *dy, const element *qkv, const float *lse, const float *delta, const int *step,
                    element *dqkv, float scale, i64 rows, int T, int H, u32 seed, u32 site, int threshold)
{
    i64 row = row_of_warp(), bh = row / T, pitch = 3ll * H * D;
    if (row >= rows) return;
    int t = (int)(row % T);
    const element *head = qkv + bh / H * T * pitch + bh % H * D, *dout = dy + (bh / H * T * H + bh % H) * D;
    float k[EACH], v[EACH], dk[EACH], dv[EACH];
    load_row(k, head + t * pitch + H * D);
    load_row(v, head + t * pitch + 2 * H * D);
    clear(dk);
    clear(dv);
    for (int q = CAUSAL ? t : 0; q < T; q++) {
        const element *query = head + q * pitch, *dy_row = dout + (i64)q * H * D;
        float p = expf(times(k, query) * scale - lse[bh * T + q]), dp = times(v, dy_row);
        float keep = DROPOUT ? keep_scale(seed, site, *step, (u32)bh, q, t, threshold) : 1;
        add_row(dv, p * keep, dy_row);
        add_row(dk, p * (dp * keep - delta[bh * T + q]), query);
    }
    store_row(dqkv + (head - qkv) + t * pitch + H * D, dk, scale);
    store_row(dqkv + (head - qkv) + t * pitch + 2 * H * D, dv, 1);
}
