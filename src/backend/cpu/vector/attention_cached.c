/* Attention of one new position over the KV cache, for sampling. Each query head reads its keys and
 * values once, tile by tile. */
#include "backend/cpu/vector/attention_tile.h"
#include "backend/cpu/vector/common.h"

static float dot(const float *a, const float *b, int64_t n)
{
    vf sum = {0};
    int64_t i = 0;
    for (; i + W <= n; i += W) sum += vf_load(a + i) * vf_load(b + i);
    if (i < n) sum += vf_load_part(a + i, n - i) * vf_load_part(b + i, n - i);
    return vf_sum(sum);
}

/* y = y * factor + sum over keys k of p[k] * v[k], where v[k] is a row of n elements. */
static void add_values(float *y, float factor, const float *p, const float *v, int64_t stride,
                       int64_t keys, int64_t n)
{
    for (int64_t i = 0; i < n; i += W) {
        int64_t left = n - i;
        bool whole = left >= W;
        vf sum = (whole ? vf_load(y + i) : vf_load_part(y + i, left)) * factor;
        for (int64_t k = 0; k < keys; k++) {
            const float *at = v + k * stride + i;
            sum += (whole ? vf_load(at) : vf_load_part(at, left)) * p[k];
        }
        if (whole)
            vf_store(y + i, sum);
        else
            vf_store_part(y + i, sum, left);
    }
}

static void one_head(const float *q, const float *keys, const float *values, int64_t stride,
                     int64_t n, int64_t D, float *y)
{
    const float scale = LOG2_E / sqrtf((float)D);
    float max = -1e30f, sum = 0, p[TILE] = {0};
    memset(y, 0, (size_t)D * sizeof(float));
    for (int64_t k0 = 0; k0 < n; k0 += TILE) {
        int64_t keys_here = min_i64(TILE, n - k0);
        float old = max;
        for (int64_t k = 0; k < keys_here; k++) {
            p[k] = dot(q, keys + (k0 + k) * stride, D) * scale;
            max = p[k] > max ? p[k] : max;
        }
        vf part = {0};
        for (int64_t k = 0; k < keys_here; k += W) {
            vf e = tile_exp2(vf_load(p + k) - max);
            part += vf_select(vf_lanes(keys_here - k), e, (vf){0});
            vf_store(p + k, e);
        }
        float factor = tile_exp2(vf_all(old - max))[0];
        sum = sum * factor + vf_sum(part);
        add_values(y, factor, p, values + k0 * stride, stride, keys_here, D);
    }
    for (int64_t i = 0; i < D; i++) y[i] /= sum;
}

static enum status run_attention_cached(const struct kernel_call *c)
{
    const struct heads s = heads_of(&c->in_type[1], c->attr);
    const float *qkv = c->in[1];
    int64_t T_max = c->in_type[0].dim[2], kv_columns = s.KV * s.D, at = *(const int32_t *)c->in[2];
    float *keys = c->out[0], *values = keys + s.B * T_max * kv_columns, *y = c->out[1];
    BUG_IF(at < 0 || at >= T_max, "position %lld of a cache of %lld", (long long)at,
           (long long)T_max);
    for (int64_t b = 0; b < s.B; b++) {
        const float *now = qkv + b * s.row_size + s.C;
        memcpy(keys + (b * T_max + at) * kv_columns, now, (size_t)kv_columns * sizeof(float));
        memcpy(values + (b * T_max + at) * kv_columns, now + kv_columns,
               (size_t)kv_columns * sizeof(float));
    }
    /* Uses all threads or one, as libgomp terminates threads that a smaller team leaves out. One
     * thread if the heads read at most 32768 floats of keys (and as many of values). */
#pragma omp parallel for if (s.B * s.C * at > 32768)
    for (int64_t bh = 0; bh < s.B * s.H; bh++) {
        int64_t b = bh / s.H, h = bh % s.H;
        int64_t first = b * T_max * kv_columns + h / s.group * s.D;
        one_head(qkv + b * s.row_size + h * s.D, keys + first, values + first, kv_columns, at + 1,
                 s.D, y + b * s.C + h * s.D);
    }
    return ST_OK;
}

const struct kernel VEC(attention_cached_rows)[] = {
    ROW(ATTENTION_CACHED, "ffi", "ff", run_attention_cached),
    {.run = NULL},
};
