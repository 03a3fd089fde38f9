/* The backward of attention: dy, qkv, y, log-sum-exp, step -> dqkv. Which text with which tiles; the texts say how. */
#include "backend/cuda/cuda_kernels.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { DY, QKV, Y, LSE, STEP }; /* inputs */
enum {
    GRID_YZ = 65535,
    PLAIN_D = 1024
}; /* blocks at most; head size from which on registers spill */
static const double LOG2_E = 1.44269504088896341;

struct sizes {
    int64_t B, T, H, KV, D;
};

static struct sizes sizes_of(const struct kernel_call *c)
{
    int64_t H = c->attr->attention.heads, KV = attention_kv_heads(c->attr);
    const struct type *qkv = &c->in_type[QKV];
    return (struct sizes){qkv->dim[0], qkv->dim[1], H, KV, qkv->dim[2] / (H + 2 * KV)};
}

static int64_t parts_of(int64_t n, int64_t part)
{
    return (n + part - 1) / part;
}

static bool is_of(const struct kernel_call *c, enum dtype dtype)
{
    return c->in_type[DY].dtype == dtype && c->in_type[QKV].dtype == dtype &&
           c->in_type[Y].dtype == dtype && c->out_type[0].dtype == dtype &&
           c->in_type[LSE].dtype == DT_F32 && c->in_type[STEP].dtype == DT_I32;
}

/* What all kernels end with: their numbers, and where dropout draws. */
static void arg_sizes(struct cuda_launch *k, const struct sizes *s)
{
    arg_i32(k, s->T);
    arg_i32(k, s->H);
}
/* Blocks of all heads, keys' or queries', as head_here() of the texts reads them. The heads that run together have two of
 * their tensors in half of the second cache; they are a power of two, as mostly the number of a head's blocks is and,
 * nearly, that of multiprocessors: so few of these are left idle at the end. */
static void grid_of_heads(struct cuda_launch *k, const struct kernel_call *c, bool keys,
                          int64_t block)
{
    struct sizes s = sizes_of(c);
    int64_t bytes = 2 * s.T * s.D * dtype_size(c->in_type[QKV].dtype);
    int64_t heads = s.B * (keys ? s.KV : s.H), n = 1;
    while (2 * n <= heads && 2 * n * bytes <= cuda_device_of(c)->l2_bytes / 2) n *= 2;
    launch_grid(k, n, parts_of(s.T, block), parts_of(heads, n));
    arg_i32(k, heads);
}
static void arg_dropout(struct cuda_launch *k, const struct dropout *drop)
{
    arg_u32(k, drop->seed);
    arg_u32(k, drop->site);
    arg_i32(k, drop->threshold);
}

/* bf16 on tensor cores. How a block is laid out: as many warps and rows of a tile as shared memory has room for. */
struct layout {
    int warps, tile;
    int64_t block;                      /* keys, or queries, of a block */
    unsigned keys_bytes, queries_bytes; /* of shared memory */
};

static struct layout layout_of(int64_t D, int warps, int tile, bool sums)
{
    struct layout l = {.warps = warps, .tile = tile, .block = warps * (D <= 64 ? 32 : 16)};
    int64_t row = 2 * D, stage = 2 * tile * row + 2 * tile * 4, ds = 2 * tile * l.block;
    l.keys_bytes = (unsigned)(2 * l.block * row + 2 * stage + (sums ? 2 * ds : 0));
    l.queries_bytes = (unsigned)(2 * row * (l.block > 2 * tile ? l.block : 2 * tile));
    return l;
}

/* The first layout that the device has room for; no warps: none. */
static struct layout layout_for(const struct kernel_call *c, bool sums)
{
    static const int tried[][3] = {
        {16, 4, 64}, {32, 4, 64}, {64, 4, 64}, {96, 8, 64}, {96, 4, 64}, {128, 8, 64}, {128, 4, 32},
    }; /* head size, warps, rows of a tile */
    const struct target *device = cuda_device_of(c);
    int64_t D = sizes_of(c).D;
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        if (tried[i][0] != D) continue;
        struct layout l = layout_of(D, tried[i][1], tried[i][2], sums);
        if (l.keys_bytes <= (unsigned)device->shared_bytes &&
            l.queries_bytes <= (unsigned)device->shared_bytes)
            return l;
    }
    return (struct layout){0};
}

static bool fits_mma(const struct kernel_call *c, bool sums)
{
    struct sizes s = sizes_of(c);
    return is_of(c, DT_BF16) && cuda_device_of(c)->arch >= 80 && layout_for(c, sums).warps &&
           s.B * s.H <= GRID_YZ && s.T <= GRID_YZ * (int64_t)16;
}

static struct cuda_launch *add_mma(struct cuda_launches *l, const struct kernel_call *c,
                                   const struct layout *y, const char *entry, int64_t blocks,
                                   bool sums)
{
    struct sizes s = sizes_of(c);
    bool queries = strcmp(entry, "attention_grad_queries") == 0;
    struct cuda_launch *k =
        launch_add(l, queries ? "attention_grad_queries.cu" : "attention_grad.cu", entry, blocks,
                   32 * y->warps);
    launch_grid(k, blocks, s.H, s.B);
    launch_define(k, "HEAD_SIZE", s.D);
    launch_define(k, "GROUP", s.H / s.KV);
    launch_define(k, "WARPS", y->warps);
    launch_define(k, "TILE_ROWS", y->tile);
    launch_define(k, "CAUSAL", c->attr->attention.causal);
    launch_define(k, "DROPOUT", c->attr->attention.drop.threshold != 0);
    if (queries) return k;
    launch_define(k, "DQ_SUMS", sums);
    launch_define(k, "RED_VECTOR", cuda_device_of(c)->arch >= 90);
    return k;
}

static void launches_mma(const struct kernel_call *c, struct cuda_launches *l, bool sums)
{
    enum { ROW_THREADS = 256 };
    struct sizes s = sizes_of(c);
    struct layout y = layout_for(c, sums);
    float scale = (float)(1 / sqrt((double)s.D));
    int64_t tiles = parts_of(s.T, y.tile), blocks = parts_of(s.T, y.block), BH = s.B * s.H;
    int64_t stats = launch_scratch(l, BH * tiles * 2 * y.tile * 4);
    int64_t dq = sums ? launch_scratch(l, BH * tiles * y.tile * s.D * 4) : stats;

    struct cuda_launch *k = add_mma(l, c, &y, "attention_grad_rows", tiles, sums);
    k->block = ROW_THREADS;
    arg_in(k, DY);
    arg_in(k, Y);
    arg_in(k, LSE);
    arg_scratch(k, stats);
    arg_scratch(k, dq);
    arg_sizes(k, &s);

    k = add_mma(l, c, &y, "attention_grad_keys", blocks, sums);
    k->shared_bytes = y.keys_bytes;
    arg_in(k, DY);
    arg_in(k, QKV);
    arg_scratch(k, stats);
    arg_in(k, STEP);
    arg_scratch(k, dq);
    arg_out(k, 0);
    arg_f32(k, scale);
    arg_sizes(k, &s);
    grid_of_heads(k, c, true, y.block);
    arg_dropout(k, &c->attr->attention.drop);

    if (sums) {
        k = add_mma(l, c, &y, "attention_grad_convert", tiles, sums);
        arg_scratch(k, dq);
        arg_out(k, 0);
        arg_f32(k, scale);
        arg_sizes(k, &s);
        return;
    }
    k = add_mma(l, c, &y, "attention_grad_queries", blocks, sums);
    k->shared_bytes = y.queries_bytes;
    arg_in(k, DY);
    arg_in(k, QKV);
    arg_scratch(k, stats);
    arg_in(k, STEP);
    arg_out(k, 0);
    arg_f32(k, scale);
    arg_sizes(k, &s);
    grid_of_heads(k, c, false, y.block);
    arg_dropout(k, &c->attr->attention.drop);
}

static bool fits_mma_sums(const struct kernel_call *c)
{
    return !c->attr->attention.deterministic && fits_mma(c, true);
}
static void launches_mma_sums(const struct kernel_call *c, struct cuda_launches *l)
{
    launches_mma(c, l, true);
}
static bool fits_mma_two(const struct kernel_call *c)
{
    return fits_mma(c, false);
}
static void launches_mma_two(const struct kernel_call *c, struct cuda_launches *l)
{
    launches_mma(c, l, false);
}

/* float on tensor cores, rounded to tf32: two blocks on a multiprocessor, or one that is as large; with two tiles in shared
 * memory, or one. */
struct layout_tf32 {
    int head, warps, tile, stages, blocks;
};

static unsigned bytes_tf32(const struct layout_tf32 *l)
{
    int row = 4 * l->head, own = l->warps * (l->head <= 64 ? 32 : 16);
    return (unsigned)(2 * own * row + l->stages * (2 * l->tile * row + 2 * l->tile * 4));
}

/* The first that the device has room for; NULL: none. */
static const struct layout_tf32 *layout_tf32(const struct kernel_call *c)
{
    static const struct layout_tf32 tried[] = {
        {16, 4, 64, 2, 1},  {32, 4, 64, 2, 1},  {64, 4, 32, 2, 2}, {64, 8, 32, 2, 1},
        {64, 4, 32, 2, 1},  {96, 8, 32, 2, 1},  {96, 4, 32, 2, 1}, {128, 8, 32, 2, 1},
        {128, 8, 32, 1, 1}, {128, 4, 32, 1, 1},
    };
    const struct target *device = cuda_device_of(c);
    int64_t D = sizes_of(c).D;
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
        if (tried[i].head == D &&
            bytes_tf32(&tried[i]) * (unsigned)tried[i].blocks <= (unsigned)device->shared_bytes)
            return &tried[i];
    return NULL;
}

static bool fits_tf32(const struct kernel_call *c)
{
    return c->attr->attention.tf32 && is_of(c, DT_F32) && cuda_device_of(c)->arch >= 80 &&
           layout_tf32(c) && sizes_of(c).B * sizes_of(c).H <= GRID_YZ &&
           sizes_of(c).T <= GRID_YZ * (int64_t)16;
}

static struct cuda_launch *add_tf32(struct cuda_launches *l, const struct kernel_call *c,
                                    const char *entry, int64_t blocks, int threads)
{
    const struct layout_tf32 *y = layout_tf32(c);
    struct cuda_launch *k = launch_add(l, "attention_grad_tf32.cu", entry, blocks, threads);
    struct sizes s = sizes_of(c);
    launch_define(k, "HEAD_SIZE", y->head);
    launch_define(k, "GROUP", s.H / s.KV);
    launch_define(k, "WARPS", y->warps);
    launch_define(k, "TILE_ROWS", y->tile);
    launch_define(k, "STAGES", y->stages);
    launch_define(k, "CAUSAL", c->attr->attention.causal);
    launch_define(k, "DROPOUT", c->attr->attention.drop.threshold != 0);
    arg_in(k, DY);
    return k;
}

static void launches_tf32(const struct kernel_call *c, struct cuda_launches *l)
{
    enum { ROW_THREADS = 128 };
    static const char *const entries[] = {"attention_grad_queries", "attention_grad_keys"};
    const struct layout_tf32 *y = layout_tf32(c);
    const struct dropout *drop = &c->attr->attention.drop;
    struct sizes s = sizes_of(c);
    double scale = 1 / sqrt((double)s.D);
    int64_t tiles = s.B * s.H * parts_of(s.T, y->tile);
    int64_t stats = launch_scratch(l, tiles * 2 * y->tile * 4);
    struct cuda_launch *k = add_tf32(l, c, "attention_grad_rows", tiles, ROW_THREADS);
    arg_in(k, Y);
    arg_in(k, LSE);
    arg_scratch(k, stats);
    arg_sizes(k, &s);
    for (int i = 0; i < 2; i++) {
        k = add_tf32(l, c, entries[i], 1, 32 * y->warps);
        k->shared_bytes = bytes_tf32(y);
        arg_in(k, QKV);
        arg_scratch(k, stats);
        arg_in(k, STEP);
        arg_out(k, 0);
        arg_f32(k, scale);
        arg_f32(k, scale * LOG2_E);
        arg_f32(k, (double)dropout_scale(drop->threshold));
        arg_sizes(k, &s);
        grid_of_heads(k, c, i == 1, y->warps * (s.D <= 64 ? 32 : 16));
        arg_dropout(k, drop);
    }
}

/* delta by the plain text, into scratch; both of what follows starts with it. */
static int64_t add_delta(struct cuda_launches *l, const struct kernel_call *c)
{
    enum { WARPS = 4 };
    struct sizes s = sizes_of(c);
    int64_t rows = s.B * s.H * s.T, delta = launch_scratch(l, rows * 4);
    struct cuda_launch *k = launch_add(l, "attention_grad_plain.cu", "attention_grad_delta",
                                       parts_of(rows, WARPS), 32 * WARPS);
    launch_define(k, "HEAD_SIZE", s.D);
    launch_define_type(k, "T_X", c->in_type[DY].dtype);
    launch_define(k, "CAUSAL", c->attr->attention.causal);
    launch_define(k, "DROPOUT", c->attr->attention.drop.threshold != 0);
    k->spills = s.D > PLAIN_D;
    arg_in(k, DY);
    arg_in(k, Y);
    arg_scratch(k, delta);
    arg_i64(k, rows);
    arg_sizes(k, &s);
    return delta;
}

static struct cuda_launch *add_with_delta(struct cuda_launches *l, const struct kernel_call *c,
                                          const char *text, const char *entry, int64_t blocks,
                                          int threads, int64_t delta)
{
    struct cuda_launch *k = launch_add(l, text, entry, blocks, threads);
    launch_define(k, "HEAD_SIZE", sizes_of(c).D);
    launch_define(k, "CAUSAL", c->attr->attention.causal);
    launch_define(k, "DROPOUT", c->attr->attention.drop.threshold != 0);
    arg_in(k, DY);
    arg_in(k, QKV);
    arg_in(k, LSE);
    arg_scratch(k, delta);
    arg_in(k, STEP);
    arg_out(k, 0);
    arg_f32(k, 1 / sqrt((double)sizes_of(c).D));
    return k;
}

/* float by FMAs: rows of a block, as many as shared memory has room for; 0: none. */
static unsigned bytes_fma(int64_t D, int own)
{
    enum { TILE = 32 };
    int64_t rows = 2 * (own + TILE) * (D + 4), scores = 2 * TILE * (own + 4), stats = 2 * TILE;
    return (unsigned)((rows + scores + stats) * 4);
}
static int own_rows_fma(const struct kernel_call *c)
{
    int64_t D = sizes_of(c).D, room = cuda_device_of(c)->shared_bytes;
    return bytes_fma(D, 64) <= room ? 64 : bytes_fma(D, 32) <= room ? 32 : 0;
}
static bool fits_fma(const struct kernel_call *c)
{
    struct sizes s = sizes_of(c);
    bool size = s.D == 16 || s.D == 32 || s.D == 64 || s.D == 96 || s.D == 128;
    return is_of(c, DT_F32) && size && own_rows_fma(c) && s.B <= GRID_YZ && s.H <= GRID_YZ;
}
static void launches_fma(const struct kernel_call *c, struct cuda_launches *l)
{
    static const char *const entries[] = {"attention_grad_queries", "attention_grad_keys"};
    struct sizes s = sizes_of(c);
    int own = own_rows_fma(c);
    int64_t delta = add_delta(l, c), blocks = parts_of(s.T, own);
    for (int i = 0; i < 2; i++) {
        struct cuda_launch *k =
            add_with_delta(l, c, "attention_grad_f32.cu", entries[i], blocks, 256, delta);
        launch_grid(k, blocks, i ? s.KV : s.H, s.B);
        launch_define(k, "GROUP", s.H / s.KV);
        launch_define(k, "OWN_ROWS", own);
        k->shared_bytes = bytes_fma(s.D, own);
        arg_sizes(k, &s);
        arg_dropout(k, &c->attr->attention.drop);
    }
}

static bool fits_plain(const struct kernel_call *c)
{
    return is_of(c, DT_F32) || is_of(c, DT_BF16);
}
static void launches_plain(const struct kernel_call *c, struct cuda_launches *l)
{
    enum { WARPS = 4 };
    static const char *const entries[] = {"attention_grad_queries", "attention_grad_keys"};
    struct sizes s = sizes_of(c);
    int64_t delta = add_delta(l, c);
    for (int i = 0; i < 2; i++) {
        int64_t rows = s.B * (i ? s.KV : s.H) * s.T;
        struct cuda_launch *k = add_with_delta(l, c, "attention_grad_plain.cu", entries[i],
                                               parts_of(rows, WARPS), 32 * WARPS, delta);
        launch_define_type(k, "T_X", c->in_type[DY].dtype);
        k->spills = s.D > PLAIN_D;
        arg_i64(k, rows);
        arg_sizes(k, &s);
        arg_i32(k, s.KV);
        arg_dropout(k, &c->attr->attention.drop);
    }
}

const struct cuda_row attention_grad_rows[] = {
    CUDA_ROW(ATTENTION_GRAD, "mma_sums", fits_mma_sums, launches_mma_sums),
    CUDA_ROW(ATTENTION_GRAD, "mma", fits_mma_two, launches_mma_two),
    CUDA_ROW(ATTENTION_GRAD, "mma_tf32", fits_tf32, launches_tf32),
    CUDA_ROW(ATTENTION_GRAD, "fma", fits_fma, launches_fma),
    CUDA_ROW(ATTENTION_GRAD, "plain", fits_plain, launches_plain),
    CUDA_ROWS_END,
};
