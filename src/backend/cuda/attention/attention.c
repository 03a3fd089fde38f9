/* Attention forward, host side: selects tensor cores for bf16 and tf32, FMAs for f32, or else the
 * kernel that computes one query at a time. */
#include "backend/cuda/attention/attention_shape.h"
#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"
#include "base/rng.h"

#include <math.h>

enum { MAX_HEAD = 256, TENSOR_CORES = 80, CHUNK = 16 };

/* tiles: query rows of a warp / 16; keys: of a tile in shared memory; blocks: that must fit on an
 * SM; keep_q: whether registers hold q. */
struct tile {
    int tiles, warps, keys, blocks, keep_q;
};

/* Shared memory: keys and values of two tiles, and queries; rows have an even number of chunks. */
static int64_t tile_bytes(const struct attention_shape *h, const struct tile *t)
{
    int64_t row = round_up(h->D * dtype_size(h->dtype), 2 * CHUNK);
    return (4 * t->keys + 16 * t->tiles * t->warps) * row;
}

/* For a head size over 128: the first tile that fits into shared memory, or else the last one. */
static struct tile wide_tile_of(const struct kernel_call *c, const struct attention_shape *h)
{
    static const struct tile all[] = {
        {1, 8, 64, 1, 0}, {1, 8, 32, 1, 0}, {1, 4, 32, 1, 0}, {1, 2, 32, 1, 0}};
    int i = h->dtype == DT_F32 ? 2 : 0;
    while (i + 1 < COUNT_OF(all) && tile_bytes(h, &all[i]) > cuda_device_of(c)->shared_bytes) i++;
    return all[i];
}

/* Every warp reads all keys and values from shared memory, so a warp has 32 rows if registers
 * allow. */
static struct tile tile_of(const struct kernel_call *c, const struct attention_shape *h)
{
    bool drop = c->attr->attention.drop.threshold > 0;
    bool most_registers = drop || !c->attr->attention.causal;
    if (h->D > 128) return wide_tile_of(c, h);
    if (h->dtype == DT_F32)
        return h->D <= 64 ? (struct tile){2, 4, 64, 2, 0} : (struct tile){1, 4, 32, 2, 0};
    if (h->D <= 64 && drop && h->T <= 1024) return (struct tile){1, 4, 64, 3, 1};
    if (h->D <= 64) return (struct tile){2, 4, 64, 2, 1};
    if (h->D <= 96) return (struct tile){2, 4, 64, 2, 0};
    return (struct tile){2, 4, most_registers ? 32 : 64, 2, 0};
}

static bool fits_tensor_cores(const struct kernel_call *c)
{
    const struct target *d = cuda_device_of(c);
    struct attention_shape h = attention_shape_of(c, FORWARD_QKV);
    struct tile t = tile_of(c, &h);
    return d->arch >= TENSOR_CORES && h.D <= MAX_HEAD && h.D * dtype_size(h.dtype) % CHUNK == 0 &&
           tile_bytes(&h, &t) <= d->shared_bytes;
}
static bool fits_tf32(const struct kernel_call *c)
{
    return c->numerics.tf32 && fits_tensor_cores(c);
}

static void arg_tensors(struct cuda_launch *k)
{
    args_in(k, 0, "qkv step");
    args_out(k, 0, "y lse");
}

/* Adds the launch of a tiled kernel, with the constants and arguments that all tiled kernels have.
 * The blocks of `heads` heads run concurrently, the longest blocks first. */
static struct cuda_launch *launch_tiled(const struct kernel_call *c, struct cuda_launches *l,
                                        const char *text, const struct attention_shape *h,
                                        int64_t heads, int rows, int threads)
{
    int64_t blocks = ceil_div(h->T, rows) * h->B * h->H;
    struct cuda_launch *k = launch_add(l, text, "attention_forward", blocks, threads);
    launch_define(k, "HEAD", h->D);
    attention_define(k, c, h);
    arg_tensors(k);
    arg_lengths(k, h);
    arg_i32(k, "BH", h->B * h->H);
    arg_i32(k, "heads_at_once", heads);
    arg_f32(k, "scale", M_LOG2E / h->divisor);
    return k;
}

static void tensor_cores(const struct kernel_call *c, struct cuda_launches *l)
{
    struct attention_shape h = attention_shape_of(c, FORWARD_QKV);
    struct tile t = tile_of(c, &h);
    struct cuda_launch *k = launch_tiled(c, l, "attention.cu", &h, attention_heads_at_once(c, &h),
                                         16 * t.tiles * t.warps, 32 * t.warps);
    launch_define_type(k, "T_X", h.dtype);
    launch_define(k, "TILES", t.tiles);
    launch_define(k, "WARPS", t.warps);
    launch_define(k, "KEYS", t.keys);
    launch_define(k, "BLOCKS", t.blocks);
    launch_define(k, "KEEP_Q", t.keep_q);
    arg_dropout_bytes(k, &c->attr->attention.drop);
    k->shared_bytes = (unsigned)tile_bytes(&h, &t);
}

/* Shared memory of attention_f32.cu: q, k, v and the weights. */
enum { F32_ROWS = 64, F32_THREADS = 128, F32_COLUMNS = 32, WIDE = 128, WIDE_THREADS = 256 };
static int64_t f32_bytes(const struct attention_shape *h, int64_t keys)
{
    int64_t pitch = round_up(h->D, F32_COLUMNS);
    return ((F32_ROWS + 2 * keys) * pitch + F32_ROWS * keys) * (int64_t)sizeof(float);
}
static int f32_keys(const struct kernel_call *c, const struct attention_shape *h)
{
    return f32_bytes(h, 64) <= cuda_device_of(c)->shared_bytes ? 64 : 32;
}
static bool fits_f32(const struct kernel_call *c)
{
    const struct target *d = cuda_device_of(c);
    struct attention_shape h = attention_shape_of(c, FORWARD_QKV);
    bool wide = h.D > WIDE;
    return d->arch >= TENSOR_CORES && h.D <= MAX_HEAD && h.D * 4 % CHUNK == 0 && /* cp.async */
           (wide ? attention_wide_rows(c, &h, h.H, 1) > 0
                 : f32_bytes(&h, f32_keys(c, &h)) <= d->shared_bytes);
}
static void multiply_add(const struct kernel_call *c, struct cuda_launches *l)
{
    struct attention_shape h = attention_shape_of(c, FORWARD_QKV);
    const struct dropout *drop = &c->attr->attention.drop;
    bool wide = h.D > WIDE;
    int rows = wide ? attention_wide_rows(c, &h, h.H, 1) : F32_ROWS;
    /* Wide heads need few bytes a clock, so L2 does not limit the number of concurrent heads. */
    int64_t heads = wide ? h.B * h.H : attention_heads_at_once(c, &h);
    struct cuda_launch *k = launch_tiled(c, l, wide ? "attention_f32_wide.cu" : "attention_f32.cu",
                                         &h, heads, rows, wide ? WIDE_THREADS : F32_THREADS);
    if (wide)
        launch_define(k, "OWN_ROWS", rows);
    else
        launch_define(k, "KEYS", f32_keys(c, &h));
    arg_dropout(k, drop);
    arg_f32(k, "keep_scale", (double)dropout_scale(drop->threshold));
    k->shared_bytes =
        (unsigned)(wide ? attention_wide_bytes(&h, rows, 1) : f32_bytes(&h, f32_keys(c, &h)));
}

/* Warps of a block, as in attention_plain.cu; each has an output row in shared memory. */
enum { PLAIN_WARPS = 4, CACHED_WARPS = 8 };
static bool row_fits(const struct kernel_call *c, int64_t D, int warps)
{
    return D * warps * (int64_t)sizeof(float) + 1024 <= cuda_device_of(c)->shared_bytes;
}
static bool fits_plain(const struct kernel_call *c)
{
    return row_fits(c, attention_shape_of(c, FORWARD_QKV).D, PLAIN_WARPS);
}
static void plain(const struct kernel_call *c, struct cuda_launches *l)
{
    struct attention_shape h = attention_shape_of(c, FORWARD_QKV);
    const struct dropout *drop = &c->attr->attention.drop;
    int64_t rows = h.B * h.H * h.T;
    struct cuda_launch *k = launch_add(l, "attention_plain.cu", "attention_plain",
                                       ceil_div(rows, PLAIN_WARPS), 32 * PLAIN_WARPS);
    launch_define_type(k, "T_X", h.dtype);
    arg_tensors(k);
    arg_i32(k, "B", h.B);
    arg_lengths(k, &h);
    arg_i32(k, "KV", h.KV);
    arg_i32(k, "D", h.D);
    arg_i32(k, "causal", c->attr->attention.causal);
    arg_f32(k, "scale", 1 / h.divisor);
    arg_dropout(k, drop);
    arg_f32(k, "keep_scale", (double)dropout_scale(drop->threshold));
    k->shared_bytes = (unsigned)(h.D * PLAIN_WARPS * (int64_t)sizeof(float));
}

static bool fits_cached(const struct kernel_call *c)
{
    int64_t D = c->in_type[0].dim[3] / attention_kv_heads(c->attr); /* cache (2,B,Tmax,KV*D) */
    return row_fits(c, D, CACHED_WARPS);
}
static void cached(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *cache = &c->in_type[0];
    int64_t B = cache->dim[1], H = c->attr->attention.heads, KV = attention_kv_heads(c->attr);
    int64_t D = cache->dim[3] / KV;
    struct cuda_launch *k =
        launch_add(l, "attention_plain.cu", "attention_cached", B * H, 32 * CACHED_WARPS);
    launch_define_type(k, "T_X", cache->dtype);
    arg_out(k, "cache", 0);
    args_in(k, 1, "qkv position");
    arg_out(k, "y", 1);
    arg_i32(k, "B", B);
    arg_i32(k, "Tmax", cache->dim[2]);
    arg_i32(k, "H", H);
    arg_i32(k, "KV", KV);
    arg_i32(k, "D", D);
    arg_f32(k, "scale", 1 / sqrt((double)D));
    k->shared_bytes = (unsigned)(D * CACHED_WARPS * (int64_t)sizeof(float));
}

const struct cuda_row attention_rows[] = {
    CUDA_ROW(ATTENTION, "mma", "bi", "bf", fits_tensor_cores, tensor_cores),
    CUDA_ROW(ATTENTION, "mma_tf32", "fi", "ff", fits_tf32, tensor_cores),
    CUDA_ROW(ATTENTION, "fma", "fi", "ff", fits_f32, multiply_add),
    CUDA_ROW(ATTENTION, "plain", "ai", "af", fits_plain, plain),
    CUDA_ROW(ATTENTION_CACHED, "plain", "aai", "aa", fits_cached, cached),
    CUDA_ROWS_END,
};
