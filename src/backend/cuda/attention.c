/* Attention forwards: on the tensor cores in bf16 and tf32, with multiply-adds in f32, and row by row for what is left. */
#include "backend/cuda/cuda_kernels.h"
#include "base/rng.h"

#include <math.h>

enum { MOST_HEAD = 128, F32_MOST_HEAD = 256, TENSOR_CORES = 80, CHUNK = 16 };
static const double LOG2_E = 1.44269504088896341;

struct heads {
    int64_t B, T, H, KV, D;
    enum dtype dtype;
};

static struct heads heads_of(const struct kernel_call *c)
{
    const struct type *qkv = &c->in_type[0]; /* (B,T,(H+2KV)D) */
    int H = c->attr->attention.heads, KV = attention_kv_heads(c->attr);
    return (struct heads){qkv->dim[0], qkv->dim[1], H, KV, qkv->dim[2] / (H + 2 * KV), qkv->dtype};
}

/* Query rows of a warp in sixteens, warps of a block, keys of a tile, blocks of a multiprocessor, and whether q stays in
 * registers. */
struct tile {
    int tiles, warps, keys, blocks, keep_q;
};

/* A warp takes 32 rows where registers allow, as it reads all keys and values from shared memory for its rows alone. */
static struct tile tile_of(const struct kernel_call *c, const struct heads *h)
{
    bool drop = c->attr->attention.drop.threshold > 0;
    bool most_registers = drop || !c->attr->attention.causal;
    if (h->dtype == DT_F32)
        return h->D <= 64 ? (struct tile){2, 4, 64, 2, 0} : (struct tile){1, 4, 32, 2, 0};
    if (h->D <= 64 && drop && h->T <= 1024) return (struct tile){1, 4, 64, 3, 1};
    if (h->D <= 64) return (struct tile){2, 4, 64, 2, 1};
    if (h->D <= 96) return (struct tile){2, 4, 64, 2, 0};
    return (struct tile){2, 4, most_registers ? 32 : 64, 2, 0};
}

/* Keys and values of two tiles, and the queries; rows are whole pairs of chunks. */
static int64_t tile_bytes(const struct heads *h, const struct tile *t)
{
    int64_t row = (h->D * dtype_size(h->dtype) + 2 * CHUNK - 1) / (2 * CHUNK) * (2 * CHUNK);
    return (4 * t->keys + 16 * t->tiles * t->warps) * row;
}

static bool types(const struct kernel_call *c, enum dtype dtype)
{
    return c->in_type[0].dtype == dtype && c->in_type[1].dtype == DT_I32 &&
           c->out_type[0].dtype == dtype && c->out_type[1].dtype == DT_F32;
}

static bool fits_tensor_cores(const struct kernel_call *c, enum dtype dtype)
{
    if (!types(c, dtype)) return false;
    const struct target *d = cuda_device_of(c);
    struct heads h = heads_of(c);
    struct tile t = tile_of(c, &h);
    return d->arch >= TENSOR_CORES && h.D <= MOST_HEAD && h.D * dtype_size(dtype) % CHUNK == 0 &&
           tile_bytes(&h, &t) <= d->shared_bytes;
}
static bool fits_bf16(const struct kernel_call *c)
{
    return fits_tensor_cores(c, DT_BF16);
}
static bool fits_tf32(const struct kernel_call *c)
{
    return c->attr->attention.tf32 && fits_tensor_cores(c, DT_F32);
}

/* As many heads as leave half of the second cache free while their keys and values are in it: whole groups. */
static int64_t heads_at_once(const struct kernel_call *c, const struct heads *h)
{
    int64_t bytes = 2 * h->T * h->D * dtype_size(h->dtype), all = h->B * h->H;
    int64_t n = cuda_device_of(c)->l2_bytes / 2 / (bytes ? bytes : 1), group = h->H / h->KV;
    return n < 1 ? group : n * group < all ? n * group : all;
}

static void arg_tensors(struct cuda_launch *k)
{
    arg_in(k, 0);
    arg_in(k, 1);
    arg_out(k, 0);
    arg_out(k, 1);
}

/* What the two tiled texts have in common, up to dropout's threshold. */
static struct cuda_launch *launch_tiled(const struct kernel_call *c, struct cuda_launches *l,
                                        const char *text, const struct heads *h, int rows,
                                        int threads)
{
    const struct dropout *drop = &c->attr->attention.drop;
    int64_t blocks = (h->T + rows - 1) / rows * h->B * h->H;
    struct cuda_launch *k = launch_add(l, text, "attention_forward", blocks, threads);
    launch_define(k, "HEAD", h->D);
    launch_define(k, "GROUP", h->H / h->KV);
    launch_define(k, "CAUSAL", c->attr->attention.causal);
    launch_define(k, "DROPOUT", drop->threshold > 0);
    arg_tensors(k);
    arg_i32(k, h->T);
    arg_i32(k, h->H);
    arg_i32(k, h->B * h->H);
    arg_i32(k, heads_at_once(c, h));
    arg_f32(k, LOG2_E / sqrt((double)h->D));
    arg_u32(k, drop->seed);
    arg_u32(k, drop->site);
    return k;
}

static void tensor_cores(const struct kernel_call *c, struct cuda_launches *l)
{
    struct heads h = heads_of(c);
    int threshold = c->attr->attention.drop.threshold;
    struct tile t = tile_of(c, &h);
    struct cuda_launch *k =
        launch_tiled(c, l, "attention.cu", &h, 16 * t.tiles * t.warps, 32 * t.warps);
    launch_define_type(k, "T_X", h.dtype);
    launch_define(k, "TILES", t.tiles);
    launch_define(k, "WARPS", t.warps);
    launch_define(k, "KEYS", t.keys);
    launch_define(k, "BLOCKS", t.blocks);
    launch_define(k, "KEEP_Q", t.keep_q);
    /* See dropout_kept of device.cuh. */
    bool low = threshold <= 128;
    arg_u32(k, (uint32_t)(low ? threshold : threshold - 128) * 0x01010101u);
    arg_u32(k, low ? UINT32_MAX : 0);
    arg_f32(k, (double)dropout_scale(threshold));
    k->shared_bytes = (unsigned)tile_bytes(&h, &t);
}

/* Rows, pitch and keys as in attention_f32.cu: q, k, v and the weights in shared memory. */
enum { F32_ROWS = 64, F32_THREADS = 128, F32_COLUMNS = 32 };
static int64_t f32_bytes(const struct heads *h, int64_t keys)
{
    int64_t pitch = (h->D + F32_COLUMNS - 1) / F32_COLUMNS * F32_COLUMNS;
    return ((F32_ROWS + 2 * keys) * pitch + F32_ROWS * keys) * (int64_t)sizeof(float);
}
static int f32_keys(const struct kernel_call *c, const struct heads *h)
{
    return f32_bytes(h, 64) <= cuda_device_of(c)->shared_bytes ? 64 : 32;
}
static bool fits_f32(const struct kernel_call *c)
{
    if (!types(c, DT_F32)) return false;
    const struct target *d = cuda_device_of(c);
    struct heads h = heads_of(c);
    return d->arch >= TENSOR_CORES && h.D <= F32_MOST_HEAD && h.D * 4 % CHUNK == 0 && /* cp.async */
           f32_bytes(&h, f32_keys(c, &h)) <= d->shared_bytes;
}
static void multiply_add(const struct kernel_call *c, struct cuda_launches *l)
{
    struct heads h = heads_of(c);
    int threshold = c->attr->attention.drop.threshold, keys = f32_keys(c, &h);
    struct cuda_launch *k = launch_tiled(c, l, "attention_f32.cu", &h, F32_ROWS, F32_THREADS);
    launch_define(k, "KEYS", keys);
    arg_i32(k, threshold);
    arg_f32(k, (double)dropout_scale(threshold));
    k->shared_bytes = (unsigned)f32_bytes(&h, keys);
}

/* Warps of a block, as attention_plain.cu has them; each has a row of the output in shared memory. */
enum { PLAIN_WARPS = 4, CACHED_WARPS = 8 };
static bool row_fits(const struct kernel_call *c, int64_t D, int warps)
{
    return D * warps * (int64_t)sizeof(float) + 1024 <= cuda_device_of(c)->shared_bytes;
}
static bool fits_plain(const struct kernel_call *c)
{
    return (types(c, DT_F32) || types(c, DT_BF16)) && row_fits(c, heads_of(c).D, PLAIN_WARPS);
}
static void plain(const struct kernel_call *c, struct cuda_launches *l)
{
    struct heads h = heads_of(c);
    const struct dropout *drop = &c->attr->attention.drop;
    int64_t rows = h.B * h.H * h.T;
    struct cuda_launch *k = launch_add(l, "attention_plain.cu", "attention_plain",
                                       (rows + PLAIN_WARPS - 1) / PLAIN_WARPS, 32 * PLAIN_WARPS);
    launch_define_type(k, "T_X", h.dtype);
    arg_tensors(k);
    arg_i32(k, h.B);
    arg_i32(k, h.T);
    arg_i32(k, h.H);
    arg_i32(k, h.KV);
    arg_i32(k, h.D);
    arg_i32(k, c->attr->attention.causal);
    arg_f32(k, 1 / sqrt((double)h.D));
    arg_u32(k, drop->seed);
    arg_u32(k, drop->site);
    arg_i32(k, drop->threshold);
    arg_f32(k, (double)dropout_scale(drop->threshold));
    k->shared_bytes = (unsigned)(h.D * PLAIN_WARPS * (int64_t)sizeof(float));
}

static bool fits_cached(const struct kernel_call *c)
{
    enum dtype t = c->in_type[0].dtype; /* (2,B,Tmax,KV*D) */
    int64_t D = c->in_type[0].dim[3] / attention_kv_heads(c->attr);
    return (t == DT_F32 || t == DT_BF16) && c->in_type[1].dtype == t &&
           c->in_type[2].dtype == DT_I32 && c->out_type[1].dtype == t &&
           row_fits(c, D, CACHED_WARPS);
}
static void cached(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *cache = &c->in_type[0];
    int64_t B = cache->dim[1], H = c->attr->attention.heads, KV = attention_kv_heads(c->attr);
    int64_t D = cache->dim[3] / KV;
    struct cuda_launch *k =
        launch_add(l, "attention_plain.cu", "attention_cached", B * H, 32 * CACHED_WARPS);
    launch_define_type(k, "T_X", cache->dtype);
    arg_out(k, 0);
    arg_in(k, 1);
    arg_in(k, 2);
    arg_out(k, 1);
    arg_i32(k, B);
    arg_i32(k, cache->dim[2]);
    arg_i32(k, H);
    arg_i32(k, KV);
    arg_i32(k, D);
    arg_f32(k, 1 / sqrt((double)D));
    k->shared_bytes = (unsigned)(D * CACHED_WARPS * (int64_t)sizeof(float));
}

const struct cuda_row attention_rows[] = {
    CUDA_ROW(ATTENTION, "mma", fits_bf16, tensor_cores),
    CUDA_ROW(ATTENTION, "mma_tf32", fits_tf32, tensor_cores),
    CUDA_ROW(ATTENTION, "fma", fits_f32, multiply_add),
    CUDA_ROW(ATTENTION, "plain", fits_plain, plain),
    CUDA_ROW(ATTENTION_CACHED, "plain", fits_cached, cached),
    CUDA_ROWS_END,
};
