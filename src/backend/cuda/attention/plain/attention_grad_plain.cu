/* attention_grad_plain.cu - attention backward for every type and head size: the fallback.
 *
 * dy (B,T,C), qkv (B,T,C+2*KV*D), y (B,T,C), log-sum-exp (B,H,T) -> delta (B,H,T), dqkv like qkv.
 * Each row of each head has one warp; the rows of keys and values have KV heads. A lane has every
 * 32nd element of the row in registers. Bound by the caches, through which every warp reads the
 * other rows. */
#include "device.cuh"

typedef T_X element;
enum { D = HEAD_SIZE, EACH = ceil_div(D, WARP), WARPS = 4, THREADS = WARPS * WARP };

DEVICE i64 row_of_warp()
{
    return (i64)blockIdx.x * WARPS + threadIdx.x / WARP;
}
DEVICE void load_row(float (&a)[EACH], const element *row)
{
    int lane = threadIdx.x % WARP;
    UNROLL for (int i = 0; i < EACH; i++)
        a[i] = lane + i * WARP < D ? to_float(row[lane + i * WARP]) : 0;
}
DEVICE void store_row(element *row, const float (&a)[EACH], float scale)
{
    int lane = threadIdx.x % WARP;
    UNROLL for (int i = 0; i < EACH; i++)
        if (lane + i * WARP < D) row[lane + i * WARP] = to<element>(a[i] * scale);
}
/* Dot product of a row in registers with a row in memory; all lanes get the result. */
DEVICE float dot(const float (&a)[EACH], const element *row)
{
    int lane = threadIdx.x % WARP;
    float sum = 0;
    UNROLL for (int i = 0; i < EACH; i++)
        if (lane + i * WARP < D) sum += a[i] * to_float(row[lane + i * WARP]);
    return warp_sum(sum);
}
DEVICE void add_row(float (&sum)[EACH], float factor, const element *row)
{
    int lane = threadIdx.x % WARP;
    UNROLL for (int i = 0; i < EACH; i++)
        if (lane + i * WARP < D) sum[i] += factor * to_float(row[lane + i * WARP]);
}
DEVICE void clear(float (&a)[EACH])
{
    UNROLL for (int i = 0; i < EACH; i++) a[i] = 0;
}
/* Factor of the probability of (q,k): 0 if dropped. */
DEVICE float keep_scale(u32 seed, u32 site, u32 step, u32 bh, u32 q, u32 k, int threshold)
{
    return keeps_score(seed, site, step, bh, q, k, threshold) ? dropout_scale(threshold) : 0;
}

/* delta = rowsum(dy y) */
KERNEL(THREADS)
attention_grad_delta(const element *dy, const element *y, float *delta, i64 rows, int T, int H)
{
    i64 row = row_of_warp(), bh = row / T, at = ((bh / H * T + row % T) * H + bh % H) * D;
    if (row >= rows) return;
    float a[EACH];
    load_row(a, dy + at);
    float sum = dot(a, y + at);
    if (threadIdx.x % WARP == 0) delta[row] = sum;
}

KERNEL(THREADS)
attention_grad_queries(const element *dy, const element *qkv, const float *lse, const float *delta,
                       const int *step, element *dqkv, float scale, i64 rows, int T, int H, int KV,
                       u32 seed, u32 site, int threshold)
{
    i64 row = row_of_warp(), bh = row / T, pitch = (H + 2ll * KV) * D;
    if (row >= rows) return;
    int t = (int)(row % T), kv = (int)(bh % H) / (H / KV);
    const element *head = qkv + bh / H * T * pitch + bh % H * D,
                  *keys = qkv + bh / H * T * pitch + (H + kv) * D;
    float q[EACH], dy_rows[EACH], dq[EACH], row_lse = lse[row], row_delta = delta[row];
    load_row(q, head + t * pitch);
    load_row(dy_rows, dy + ((bh / H * T + t) * H + bh % H) * D);
    clear(dq);
    for (int k = 0; k < (CAUSAL ? t + 1 : T); k++) {
        const element *key = keys + k * pitch;
        float p = expf(dot(q, key) * scale - row_lse), dp = dot(dy_rows, key + KV * D);
        if (DROPOUT) dp *= keep_scale(seed, site, *step, (u32)bh, t, k, threshold);
        add_row(dq, p * (dp - row_delta), key);
    }
    store_row(dqkv + (head - qkv) + t * pitch, dq, scale);
}

KERNEL_MIN(THREADS, 2)
attention_grad_keys(const element *dy, const element *qkv, const float *lse, const float *delta,
                    const int *step, element *dqkv, float scale, i64 rows, int T, int H, int KV,
                    u32 seed, u32 site, int threshold)
{
    i64 row = row_of_warp(), pitch = (H + 2ll * KV) * D; /* rows: (B,KV,T) */
    if (row >= rows) return;
    int t = (int)(row % T), kv = (int)(row / T % KV), b = (int)(row / T / KV), group = H / KV;
    i64 batch = b * T * pitch, at = batch + t * pitch + (H + kv) * D;
    float k[EACH], v[EACH], dk[EACH], dv[EACH];
    load_row(k, qkv + at);
    load_row(v, qkv + at + KV * D);
    clear(dk);
    clear(dv);
    for (int head = kv * group; head < (kv + 1) * group; head++)
        for (int q = CAUSAL ? t : 0; q < T; q++) {
            i64 bh = (i64)b * H + head;
            const element *query = qkv + batch + q * pitch + head * D,
                          *dy_row = dy + (((i64)b * T + q) * H + head) * D;
            float p = expf(dot(k, query) * scale - lse[bh * T + q]), dp = dot(v, dy_row);
            float keep = DROPOUT ? keep_scale(seed, site, *step, (u32)bh, q, t, threshold) : 1;
            add_row(dv, p * keep, dy_row);
            add_row(dk, p * (dp * keep - delta[bh * T + q]), query);
        }
    store_row(dqkv + at, dk, scale);
    store_row(dqkv + at + KV * D, dv, 1);
}
