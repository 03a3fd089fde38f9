/* Attention one query at a time, for any head size and length; also attention of a new position to
 * a cache of keys and values. qkv (B,T,H+2*KV,D) -> y (B,T,H,D), log-sum-exp (B,H,T) float.
 *
 * A warp processes 32 keys at a time, one per lane. The output is summed in shared memory, D floats
 * a warp, where a lane owns every 32nd element. Slow: bound by the latency of its reads. */
#include "device.cuh"

/* Online softmax state. `top`, subtracted from exponents, is finite, as scores may be -inf. */
struct softmax_state {
    float top, sum;
};
struct drop {
    u32 seed, site, step, bh, q;
    int threshold; /* 0: all is kept */
    float keep;    /* factor of kept elements */
};

DEVICE float keep(const drop &d, int k)
{
    if (!d.threshold) return 1;
    return keeps_score(d.seed, d.site, d.step, d.bh, d.q, (u32)k, d.threshold) ? d.keep : 0;
}

/* Processes keys first ... first + 31, then the 32 keys from first + jump on, and so on, up to key
 * n - 1. The caller sets the D elements of o to zero. */
DEVICE softmax_state attend(const T_X *q, const T_X *keys, const T_X *values, i64 stride, int first,
                            int jump, int n, int D, float scale, const drop &d, float *o)
{
    softmax_state a = {LOWEST_F, 0};
    int lane = threadIdx.x % WARP;
    for (int at = first; at < n; at += jump) {
        int k = at + lane;
        float s = k < n ? 0 : -INFINITY_F;
        if (k < n)
            for (int i = 0; i < D; i++) s += to_float(q[i]) * to_float(keys[k * stride + i]);
        s *= scale;
        float top = fmaxf(a.top, warp_max(s)), factor = expf(a.top - top),
              p = k < n ? expf(s - top) : 0;
        a.sum = a.sum * factor + warp_sum(p);
        a.top = top;
        if (k < n) p *= keep(d, k);
        for (int i = 0; i < D; i += WARP) {
            float sum = i + lane < D ? o[i + lane] * factor : 0;
            for (int j = 0; j < WARP && at + j < n; j++) {
                float weight = __shfl_sync(~0u, p, j);
                if (i + lane < D) sum += weight * to_float(values[(at + j) * stride + i + lane]);
            }
            if (i + lane < D) o[i + lane] = sum;
        }
    }
    return a;
}

/* One warp per query. */
KERNEL_MIN(128, 4)
attention_plain(const T_X *qkv, const int *step, T_X *y, float *lse, int B, int T, int H, int KV,
                int D, int causal, float scale, u32 seed, u32 site, int threshold, float keep_scale)
{
    extern __shared__ __align__(1024) u8 shared_memory[];
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float *o = (float *)shared_memory + warp * D;
    i64 at = (i64)blockIdx.x * (128 / WARP) + warp, C = (i64)H * D, stride = C + 2 * KV * D;
    if (at >= (i64)B * H * T) return;
    int bh = (int)(at / T), t = (int)(at % T);
    const T_X *q = qkv + ((i64)(bh / H) * T + t) * stride + bh % H * D;
    const T_X *keys = qkv + (i64)(bh / H) * T * stride + C + bh % H / (H / KV) * D;
    drop d = {seed, site, threshold ? (u32)*step : 0, (u32)bh, (u32)t, threshold, keep_scale};
    for (int i = lane; i < D; i += WARP) o[i] = 0;
    softmax_state a =
        attend(q, keys, keys + KV * D, stride, 0, WARP, causal ? t + 1 : T, D, scale, d, o);
    y += ((i64)(bh / H) * T + t) * C + bh % H * D;
    for (int i = lane; i < D; i += WARP) y[i] = to<T_X>(o[i] / a.sum);
    if (lane == 0) lse[at] = a.top + logf(a.sum);
}

/* cache (2,B,Tmax,KV*D), qkv (B,1,(H+2*KV)*D) -> the cache with k and v stored at `position`, y
 * (B,1,C): attention to all positions up to this one. Each query head has one block, and its warps
 * divide the keys. The blocks of a group write the same k and v, and each block waits only for its
 * own writes. A position outside the cache changes nothing. */
KERNEL_MIN(256, 2)
attention_cached(T_X *cache, const T_X *qkv, const int *position, T_X *y, int B, int Tmax, int H,
                 int KV, int D, float scale)
{
    enum { WARPS = 256 / WARP };
    extern __shared__ __align__(1024) u8 shared_memory[];
    __shared__ softmax_state part[WARPS];
    int warp = threadIdx.x / WARP, b = (int)blockIdx.x / H, h = (int)blockIdx.x % H,
        now = *position;
    int kv = h / (H / KV);
    i64 C = (i64)H * D, wide = (i64)KV * D;
    T_X *keys = cache + (i64)b * Tmax * wide + kv * D, *values = keys + (i64)B * Tmax * wide;
    float *o = (float *)shared_memory;
    if (now < 0 || now >= Tmax) return;
    qkv += b * (C + 2 * wide);
    for (int i = threadIdx.x; i < D; i += 256) {
        keys[now * wide + i] = qkv[C + kv * D + i];
        values[now * wide + i] = qkv[C + wide + kv * D + i];
    }
    for (int i = threadIdx.x; i < WARPS * D; i += 256) o[i] = 0;
    __syncthreads();
    drop none = {};
    softmax_state a = attend(qkv + h * D, keys, values, wide, warp * WARP, 256, now + 1, D, scale,
                             none, o + warp * D);
    if (threadIdx.x % WARP == 0) part[warp] = a;
    __syncthreads();
    float top = LOWEST_F, sum = 0;
    for (int w = 0; w < WARPS; w++) top = fmaxf(top, part[w].top);
    for (int w = 0; w < WARPS; w++) sum += part[w].sum * expf(part[w].top - top);
    for (int i = threadIdx.x; i < D; i += 256) {
        float all = 0;
        for (int w = 0; w < WARPS; w++) all += o[w * D + i] * expf(part[w].top - top);
        y[b * C + h * D + i] = to<T_X>(all / sum);
    }
}
