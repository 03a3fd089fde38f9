/* Attention backward: dy, qkv, y, log-sum-exp, step -> dqkv. Selects kernels. */
#include "backend/cuda/attention/attention_shape.h"
#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

/* The largest grid dimensions y and z; the largest head size without spilled registers. */
enum { GRID_YZ = 65535, PLAIN_D = 1024 };

/* Sets the grid that head_here() of the kernels expects: blocks of keys or of queries of all heads.
 * Two tensors of the heads that run concurrently fit into half of L2. The number of these heads is
 * a power of two: the number of a head's blocks is often a power of two, and the number of a GPU's
 * SMs is nearly one, so few SMs are idle. */
static void grid_of_heads(struct cuda_launch *k, const struct kernel_call *c, bool keys,
                          int64_t block)
{
    struct attention_shape s = attention_shape_of(c, QKV);
    int64_t bytes = 2 * s.T * s.D * dtype_size(c->in_type[QKV].dtype);
    int64_t heads = s.B * (keys ? s.KV : s.H), n = 1;
    while (2 * n <= heads && 2 * n * bytes <= cuda_device_of(c)->l2_bytes / 2) n *= 2;
    launch_grid(k, n, ceil_div(s.T, block), ceil_div(heads, n));
    arg_i32(k, "heads", heads);
}

/* Sets arguments and grid of a tensor-core kernel whose blocks have `block` keys or queries. */
static void arg_walk(struct cuda_launch *k, const struct kernel_call *c, int64_t stats, bool keys,
                     int64_t block)
{
    struct attention_shape s = attention_shape_of(c, QKV);
    args_in(k, DY, "dy qkv");
    arg_scratch(k, "stats", stats);
    arg_in(k, "step_number", STEP);
    arg_out(k, "dqkv", 0);
    arg_f32(k, "scale", 1 / s.divisor);
    arg_lengths(k, &s);
    grid_of_heads(k, c, keys, block);
    arg_dropout(k, &c->attr->attention.drop);
}

/* bf16 on tensor cores: a block has as many warps, and a tile as many rows, as fit into shared
 * memory. Heads over WIDE have one launch for dv and one for dk (PARTS of the kernels). */
enum { WIDE = 128, DKV = 0, DV, DK };
struct layout {
    int warps, tile;
    int64_t block;                      /* keys or queries of a block */
    unsigned keys_bytes, queries_bytes; /* shared memory */
};

static struct layout layout_of(int64_t D, int warps, int tile, bool sums)
{
    struct layout l = {.warps = warps, .tile = tile, .block = warps * (D <= 64 ? 32 : 16)};
    int64_t row = 2 * D, stage = 2 * tile * row + 2 * tile * 4, ds = 2 * tile * l.block;
    l.keys_bytes = (unsigned)(2 * l.block * row + 2 * stage + (sums ? 2 * ds : 0));
    if (D > WIDE)
        l.queries_bytes = (unsigned)(2 * row * (l.block + 2 * tile));
    else
        l.queries_bytes = (unsigned)(2 * row * max_i64(l.block, 2 * tile));
    return l;
}

/* The first layout that fits the device; 0 warps: none. */
static struct layout layout_for(const struct kernel_call *c, bool sums)
{
    static const int candidates[][3] = {
        {16, 4, 64},  {32, 4, 64},  {64, 4, 64},  {96, 8, 64},  {96, 4, 64},
        {128, 8, 64}, {128, 4, 32}, {192, 8, 64}, {192, 8, 32}, {192, 4, 32},
        {192, 2, 32}, {256, 8, 32}, {256, 4, 32}, {256, 2, 32},
    }; /* head size, warps, rows of a tile */
    const struct target *device = cuda_device_of(c);
    int64_t D = attention_shape_of(c, QKV).D;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        if (candidates[i][0] != D) continue;
        struct layout l = layout_of(D, candidates[i][1], candidates[i][2], sums);
        if (l.keys_bytes <= (unsigned)device->shared_bytes &&
            l.queries_bytes <= (unsigned)device->shared_bytes)
            return l;
    }
    return (struct layout){0};
}

static bool fits_mma(const struct kernel_call *c, bool sums)
{
    struct attention_shape s = attention_shape_of(c, QKV);
    return cuda_device_of(c)->arch >= 80 && !(sums && s.D > WIDE) && layout_for(c, sums).warps &&
           s.B * s.H <= GRID_YZ && s.T <= GRID_YZ * (int64_t)16;
}

static struct cuda_launch *add_mma(struct cuda_launches *l, const struct kernel_call *c,
                                   const struct layout *y, const char *entry, int64_t blocks,
                                   bool sums, int parts)
{
    struct attention_shape s = attention_shape_of(c, QKV);
    bool queries = strcmp(entry, "attention_grad_queries") == 0;
    struct cuda_launch *k =
        launch_add(l, queries ? "attention_grad_queries.cu" : "attention_grad.cu", entry, blocks,
                   32 * y->warps);
    launch_grid(k, blocks, s.H, s.B);
    launch_define(k, "HEAD_SIZE", s.D);
    attention_define(k, c, &s);
    launch_define(k, "WARPS", y->warps);
    launch_define(k, "TILE_ROWS", y->tile);
    if (queries) return k;
    launch_define(k, "DQ_SUMS", sums);
    launch_define(k, "PARTS", parts);
    launch_define(k, "RED_VECTOR", cuda_device_of(c)->arch >= 90);
    return k;
}

static void launches_mma(const struct kernel_call *c, struct cuda_launches *l, bool sums)
{
    enum { ROW_THREADS = 256 };
    struct attention_shape s = attention_shape_of(c, QKV);
    struct layout y = layout_for(c, sums);
    int64_t tiles = ceil_div(s.T, y.tile), blocks = ceil_div(s.T, y.block), BH = s.B * s.H;
    int64_t stats = launch_scratch(l, BH * tiles * 2 * y.tile * 4);
    int64_t dq = sums ? launch_scratch(l, BH * tiles * y.tile * s.D * 4) : stats;

    int first = s.D > WIDE ? DV : DKV, last = s.D > WIDE ? DK : DKV;
    struct cuda_launch *k = add_mma(l, c, &y, "attention_grad_rows", tiles, sums, first);
    k->block = ROW_THREADS;
    arg_in(k, "dy", DY);
    args_in(k, Y, "y lse");
    arg_scratch(k, "stats", stats);
    arg_scratch(k, "dq", dq);
    arg_lengths(k, &s);

    for (int parts = first; parts <= last; parts++) {
        k = add_mma(l, c, &y, "attention_grad_keys", blocks, sums, parts);
        k->shared_bytes = y.keys_bytes;
        arg_scratch(k, "dq", dq);
        arg_walk(k, c, stats, true, y.block);
    }

    if (sums) {
        k = add_mma(l, c, &y, "attention_grad_convert", tiles, sums, first);
        arg_scratch(k, "dq", dq);
        arg_out(k, "dqkv", 0);
        arg_f32(k, "scale", 1 / s.divisor);
        arg_lengths(k, &s);
        return;
    }
    k = add_mma(l, c, &y, "attention_grad_queries", blocks, sums, first);
    k->shared_bytes = y.queries_bytes;
    arg_walk(k, c, stats, false, y.block);
}

static bool fits_mma_sums(const struct kernel_call *c)
{
    return !c->numerics.deterministic && fits_mma(c, true);
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

/* float rounded to tf32. stages: tiles in shared memory; blocks: blocks that must fit on an SM. */
struct layout_tf32 {
    int head, warps, tile, stages, blocks;
};

static unsigned bytes_tf32(const struct layout_tf32 *l)
{
    int row = 4 * l->head, own = l->warps * (l->head <= 64 ? 32 : 16);
    return (unsigned)(2 * own * row + l->stages * (2 * l->tile * row + 2 * l->tile * 4));
}

/* Returns the first layout that fits the device, or NULL if no layout fits. */
static const struct layout_tf32 *layout_tf32(const struct kernel_call *c)
{
    static const struct layout_tf32 candidates[] = {
        {16, 4, 64, 2, 1},  {32, 4, 64, 2, 1},  {64, 4, 32, 2, 2}, {64, 8, 32, 2, 1},
        {64, 4, 32, 2, 1},  {96, 8, 32, 2, 1},  {96, 4, 32, 2, 1}, {128, 8, 32, 2, 1},
        {128, 8, 32, 1, 1}, {128, 4, 32, 1, 1},
    };
    const struct target *device = cuda_device_of(c);
    int64_t D = attention_shape_of(c, QKV).D;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        if (candidates[i].head == D &&
            bytes_tf32(&candidates[i]) * (unsigned)candidates[i].blocks <=
                (unsigned)device->shared_bytes)
            return &candidates[i];
    return NULL;
}

static bool fits_tf32(const struct kernel_call *c)
{
    return c->numerics.tf32 && cuda_device_of(c)->arch >= 80 && layout_tf32(c) &&
           attention_shape_of(c, QKV).B * attention_shape_of(c, QKV).H <= GRID_YZ &&
           attention_shape_of(c, QKV).T <= GRID_YZ * (int64_t)16;
}

static struct cuda_launch *add_tf32(struct cuda_launches *l, const struct kernel_call *c,
                                    const char *entry, int64_t blocks, int threads)
{
    const struct layout_tf32 *y = layout_tf32(c);
    struct cuda_launch *k = launch_add(l, "attention_grad_tf32.cu", entry, blocks, threads);
    struct attention_shape s = attention_shape_of(c, QKV);
    launch_define(k, "HEAD_SIZE", y->head);
    attention_define(k, c, &s);
    launch_define(k, "WARPS", y->warps);
    launch_define(k, "TILE_ROWS", y->tile);
    launch_define(k, "STAGES", y->stages);
    return k;
}

static void launches_tf32(const struct kernel_call *c, struct cuda_launches *l)
{
    enum { ROW_THREADS = 128 };
    static const char *const entries[] = {"attention_grad_queries", "attention_grad_keys"};
    const struct layout_tf32 *y = layout_tf32(c);
    struct attention_shape s = attention_shape_of(c, QKV);
    int64_t tiles = s.B * s.H * ceil_div(s.T, y->tile);
    int64_t stats = launch_scratch(l, tiles * 2 * y->tile * 4);
    struct cuda_launch *k = add_tf32(l, c, "attention_grad_rows", tiles, ROW_THREADS);
    arg_in(k, "dy", DY);
    args_in(k, Y, "y lse");
    arg_scratch(k, "stats", stats);
    arg_lengths(k, &s);
    for (int i = 0; i < 2; i++) {
        k = add_tf32(l, c, entries[i], 1, 32 * y->warps);
        k->shared_bytes = bytes_tf32(y);
        arg_f32(k, "factor", 1 / s.divisor * M_LOG2E);
        arg_f32(k, "keep_scale", (double)dropout_scale(c->attr->attention.drop.threshold));
        arg_walk(k, c, stats, i == 1, y->warps * (s.D <= 64 ? 32 : 16));
    }
}

/* Adds the first launch of variants fma and plain, which computes delta. Returns the offset of
 * delta in the scratch. */
static int64_t add_delta(struct cuda_launches *l, const struct kernel_call *c)
{
    enum { WARPS = 4 };
    struct attention_shape s = attention_shape_of(c, QKV);
    int64_t rows = s.B * s.H * s.T, delta = launch_scratch(l, rows * 4);
    struct cuda_launch *k = launch_add(l, "attention_grad_plain.cu", "attention_grad_delta",
                                       ceil_div(rows, WARPS), 32 * WARPS);
    launch_define(k, "HEAD_SIZE", s.D);
    launch_define_type(k, "T_X", c->in_type[DY].dtype);
    launch_define(k, "CAUSAL", c->attr->attention.causal);
    launch_define(k, "DROPOUT", c->attr->attention.drop.threshold != 0);
    k->spills = s.D > PLAIN_D;
    arg_in(k, "dy", DY);
    arg_in(k, "y", Y);
    arg_scratch(k, "delta", delta);
    arg_i64(k, "rows", rows);
    arg_lengths(k, &s);
    return delta;
}

static struct cuda_launch *add_with_delta(struct cuda_launches *l, const struct kernel_call *c,
                                          const char *text, const char *entry, int64_t blocks,
                                          int threads, int64_t delta)
{
    struct cuda_launch *k = launch_add(l, text, entry, blocks, threads);
    launch_define(k, "HEAD_SIZE", attention_shape_of(c, QKV).D);
    launch_define(k, "CAUSAL", c->attr->attention.causal);
    launch_define(k, "DROPOUT", c->attr->attention.drop.threshold != 0);
    args_in(k, DY, "dy qkv");
    arg_in(k, "lse", LSE);
    arg_scratch(k, "delta", delta);
    arg_in(k, "step", STEP);
    arg_out(k, "dqkv", 0);
    arg_f32(k, "scale", 1 / attention_shape_of(c, QKV).divisor);
    return k;
}

/* float with FMAs: a block owns as many rows as fit into shared memory; 0: none fit. */
static unsigned bytes_fma(int64_t D, int own)
{
    enum { TILE = 32 };
    int64_t rows = 2 * (own + TILE) * (D + 4), scores = 2 * TILE * (own + 4), stats = 2 * TILE;
    return (unsigned)((rows + scores + stats) * 4);
}
static int own_rows_fma(const struct kernel_call *c)
{
    struct attention_shape s = attention_shape_of(c, QKV);
    int64_t D = s.D, limit = cuda_device_of(c)->shared_bytes;
    if (D > WIDE) return cuda_device_of(c)->arch >= 80 ? attention_wide_rows(c, &s, s.KV, 2) : 0;
    return bytes_fma(D, 64) <= limit ? 64 : bytes_fma(D, 32) <= limit ? 32 : 0;
}
static bool fits_fma(const struct kernel_call *c)
{
    struct attention_shape s = attention_shape_of(c, QKV);
    bool size = s.D == 16 || s.D == 32 || s.D % 64 == 0 || s.D == 96;
    return size && s.D <= 256 && own_rows_fma(c) && s.B <= GRID_YZ && s.H <= GRID_YZ &&
           s.T <= GRID_YZ * (int64_t)32;
}
static void launches_fma(const struct kernel_call *c, struct cuda_launches *l)
{
    static const char *const entries[] = {"attention_grad_queries", "attention_grad_keys"};
    struct attention_shape s = attention_shape_of(c, QKV);
    bool wide = s.D > WIDE;
    const char *text = wide ? "attention_grad_f32_wide.cu" : "attention_grad_f32.cu";
    int own = own_rows_fma(c);
    int64_t delta = add_delta(l, c), blocks = ceil_div(s.T, own);
    for (int i = 0; i < 2; i++) {
        struct cuda_launch *k = add_with_delta(l, c, text, entries[i], blocks, 256, delta);
        int64_t heads = i ? s.KV : s.H;
        if (wide)
            launch_grid(k, heads, s.B, blocks);
        else
            launch_grid(k, blocks, heads, s.B);
        launch_define(k, "GROUP", s.H / s.KV);
        launch_define(k, "OWN_ROWS", own);
        k->shared_bytes = wide ? (unsigned)attention_wide_bytes(&s, own, 2) : bytes_fma(s.D, own);
        arg_lengths(k, &s);
        arg_dropout(k, &c->attr->attention.drop);
    }
}

static void launches_plain(const struct kernel_call *c, struct cuda_launches *l)
{
    enum { WARPS = 4 };
    static const char *const entries[] = {"attention_grad_queries", "attention_grad_keys"};
    struct attention_shape s = attention_shape_of(c, QKV);
    int64_t delta = add_delta(l, c);
    for (int i = 0; i < 2; i++) {
        int64_t rows = s.B * (i ? s.KV : s.H) * s.T;
        struct cuda_launch *k = add_with_delta(l, c, "attention_grad_plain.cu", entries[i],
                                               ceil_div(rows, WARPS), 32 * WARPS, delta);
        launch_define_type(k, "T_X", c->in_type[DY].dtype);
        k->spills = s.D > PLAIN_D;
        arg_i64(k, "rows", rows);
        arg_lengths(k, &s);
        arg_i32(k, "KV", s.KV);
        arg_dropout(k, &c->attr->attention.drop);
    }
}

const struct cuda_row attention_grad_rows[] = {
    CUDA_ROW(ATTENTION_GRAD, "mma_sums", "bbbfi", "b", fits_mma_sums, launches_mma_sums),
    CUDA_ROW(ATTENTION_GRAD, "mma", "bbbfi", "b", fits_mma_two, launches_mma_two),
    CUDA_ROW(ATTENTION_GRAD, "mma_tf32", "ffffi", "f", fits_tf32, launches_tf32),
    CUDA_ROW(ATTENTION_GRAD, "fma", "ffffi", "f", fits_fma, launches_fma),
    CUDA_ROW(ATTENTION_GRAD, "plain", "aaafi", "a", NULL, launches_plain),
    CUDA_ROWS_END,
};
