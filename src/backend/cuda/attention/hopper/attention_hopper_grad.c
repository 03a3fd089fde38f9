/* Attention backward for compute capability 9.0. Variant wgmma has a kernel for dq and row
 * statistics and one for dk and dv; with a head size over 128 it has one each for row statistics,
 * dq, dv and dk. Variant wgmma_sums has one kernel for all gradients, which adds up dq in undefined
 * order, and a small kernel before and after it. */
#include "backend/cuda/attention/attention_shape.h"
#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"

#include <math.h>

/* These constants have the same values in the kernels. */
enum { WARPGROUP = 128, OWN = 64, STATS = 64, ALIGN = 1024, BARRIERS = 512, SUMS_THREADS = 256 };

/* The names are those of the kernels' constants; `others` is V_STAGES or DY_STAGES. */
struct layout {
    int consumers, tile, stages, others, item_stages, ahead, late;
};

/* What a launch computes; PARTS of attention_hopper_dkv.cu. */
enum part { DKV, DV, DK, DQ };
enum { WIDE = 128 }; /* a larger head size has a launch each for dv and dk */

/* The layout for a head size; NULL: none. Clocks per 128 x 128 pairs of query and key on an H200 at
 * T 1024 (12 heads of 64 or 6 of 128, batch 16) and 16384, for warpgroups x tile, ahead and late
 * (plain: neither). Both kernels together:
 *   64: 6023, 4943; 128: 10986, 8675; with fixed items for dk and dv, and without dq's separate
 *   barriers at 96 and 128: 6392, 5414; 11661, 9237
 * Each kernel, if warpgroups swap positions every round:
 *   dq, 64:     3x64 ahead 2 2641, 1948; ahead 1 2695, 2104; ahead 1 late 2785, 2059
 *   dk dv, 64:  6 stages ahead late 3779, 3197; ahead 3842, 3485; 3 warpgroups plain 3768, 3427
 *   dq, 128:    ahead 1 late 5458, 3656; late 5699, 4083
 *   dk dv, 128: 2 stages plain 6463, 5512; 4 stages late 7035, 5683
 * If they do not swap, without dq's ahead 1 and with a different ahead for dk and dv:
 *   dq, 64:     3x64 ahead 2 2882, 2032; late 3062, 2219; plain 3214, 2469;
 *               3x96 plain 3123, 2415; 2x96 ahead 2 3330, 2264
 *   dk dv, 64:  4 stages late 4345, 3628; plain 4383, 3697
 *   dq, 128:    2x64 late 5885, 4370; plain 5893, 4410; ahead 2 5995, 4509; 3x64 plain 6897, 7573
 *   dk dv, 128: 2 stages plain 7300, 6745; 3 stages, one of K, V late 7795, 6813, plain 7759, 6701
 *   both, 64, persistent blocks, items of all heads: 7206, 5998; a block per item: 8035, 5987
 * Heads of 16 and 32 use the layout of 64; 96 is not measured. Head sizes over 128, all launches
 * together, in microseconds at T 4096 and 1024 (batch 4, 8 heads, causal) on another H200:
 *   256: 1560, 146; dq late 1640, 152, then dk not late 1640, 152, dv with 2 stages of Q 1643, 152
 *   192: 1178, 109; dv with 3 stages of dY and one item 1184, 108, then dq ahead 1 with 2 stages
 *   1224, 112, late with 2 stages 1289, 116, not late 1194, 108; dk with 2 stages 1192, 110, not
 *   late 1189, 109 */
static const struct layout *layout_of(int64_t width, enum part part)
{
    static const struct {
        int head;
        enum part part;
        struct layout layout;
    } all[] = {
        {16, DQ, {3, 64, 5, 5, 2, 2, 0}},  {16, DKV, {2, 64, 6, 6, 2, 1, 1}},
        {32, DQ, {3, 64, 5, 5, 2, 2, 0}},  {32, DKV, {2, 64, 6, 6, 2, 1, 1}},
        {64, DQ, {3, 64, 5, 5, 2, 2, 0}},  {64, DKV, {2, 64, 6, 6, 2, 1, 1}},
        {96, DQ, {2, 64, 5, 5, 1, 1, 1}},  {96, DKV, {2, 64, 4, 4, 2, 0, 1}},
        {128, DQ, {2, 64, 4, 4, 1, 1, 1}}, {128, DKV, {2, 64, 3, 3, 2, 0, 1}},
        {192, DQ, {2, 64, 3, 2, 1, 0, 1}}, {192, DV, {2, 64, 3, 2, 2, 0, 0}},
        {192, DK, {2, 64, 3, 2, 1, 0, 1}}, {256, DQ, {2, 64, 2, 1, 1, 0, 0}},
        {256, DV, {2, 64, 3, 2, 1, 0, 0}}, {256, DK, {2, 64, 2, 1, 1, 0, 1}},
    };
    for (int i = 0; i < COUNT_OF(all); i++)
        if (all[i].head == width && all[i].part == part) return &all[i].layout;
    return NULL;
}

/* Shared memory. dq: Q, dY and, up to WIDE, y of items; K and V of tiles. dk, dv: K and V (dv
 * alone: K) of items; Q, dY and statistics of tiles. */
static unsigned shared_bytes(const struct layout *y, int64_t width, enum part part)
{
    int kinds = part == DV ? 1 : part == DQ && width <= WIDE ? 3 : 2;
    int64_t row = 2 * width, items = y->item_stages * kinds * y->consumers * OWN * row;
    int64_t tiles = (y->stages + y->others) * y->tile * row;
    int64_t stats = part == DQ ? 0 : y->stages * 2 * STATS * 4;
    return (unsigned)(ALIGN + items + tiles + stats + BARRIERS);
}

/* A tensor map of the statistics of `tiles` tiles of queries; a box is one tile. Flat bulk copies
 * are not used because racecheck reports them as races with the threads that wait for them. */
static struct cuda_tensor stats_of(int64_t tiles)
{
    int64_t row = 2 * STATS * 4;
    return (struct cuda_tensor){.dtype = DT_F32,
                                .dim = {2 * STATS, tiles, 1, 1, 1},
                                .step = {4, row, row * tiles, row * tiles, row * tiles},
                                .box = {2 * STATS, 1, 1, 1, 1}};
}

static bool fits(const struct kernel_call *c)
{
    struct attention_shape s = attention_shape_of(c, QKV);
    return !c->numerics.portable && cuda_hopper(c) && layout_of(s.width, DQ) &&
           s.T * s.B * s.H <= INT32_MAX;
}

static int64_t items_of(const struct attention_shape *s, enum part part)
{
    int64_t heads = s->B * (part == DQ ? s->H : s->KV);
    return heads * ceil_div(s->T, OWN * layout_of(s->width, part)->consumers);
}

static struct cuda_launch *add_launch(struct cuda_launches *l, const struct kernel_call *c,
                                      enum part part)
{
    struct attention_shape s = attention_shape_of(c, QKV);
    const struct layout *y = layout_of(s.width, part);
    int64_t processors = cuda_device_of(c)->processors;
    struct cuda_launch *k =
        launch_add(l, part == DQ ? "attention_hopper_dq.cu" : "attention_hopper_dkv.cu",
                   part == DQ ? "attention_hopper_dq" : "attention_hopper_dkv",
                   min_i64(items_of(&s, part), processors), WARPGROUP * (y->consumers + 1));
    /* With LATE in this case, a warpgroup would wait between heads for the stage that its own last
     * dK still reads. */
    bool late = y->late && !(part == DK && s.H > s.KV && y->stages < 3);
    k->arch = 90;
    k->shared_bytes = shared_bytes(y, s.width, part);
    launch_define(k, "HEAD_SIZE", s.width);
    attention_define(k, c, &s);
    launch_define(k, "CONSUMERS", y->consumers);
    launch_define(k, "TILE_ROWS", y->tile);
    launch_define(k, "STAGES", y->stages);
    launch_define(k, part == DQ ? "V_STAGES" : "DY_STAGES", y->others);
    launch_define(k, "ITEM_STAGES", y->item_stages);
    launch_define(k, "AHEAD", y->ahead);
    launch_define(k, "LATE", late);
    if (part != DQ) launch_define(k, "PARTS", part);
    return k;
}

/* Adds the last arguments of the kernels of variant wgmma. */
static void arg_sizes(struct cuda_launch *k, const struct kernel_call *c, enum part part)
{
    struct attention_shape s = attention_shape_of(c, QKV);
    arg_in(k, "step_number", STEP);
    arg_f32(k, "scale", 1 / s.divisor);
    arg_lengths(k, &s);
    arg_i32(k, "heads", s.B * (part == DQ ? s.H : s.KV));
    arg_i32(k, "items", items_of(&s, part));
    arg_dropout(k, &c->attr->attention.drop);
}

static struct cuda_launch *add_rows(struct cuda_launches *l, const struct attention_shape *s,
                                    const char *entry, int64_t blocks, bool sums)
{
    struct cuda_launch *k = launch_add(l, "attention_hopper_sums.cu", entry, blocks, SUMS_THREADS);
    k->arch = 90;
    launch_define(k, "HEAD_SIZE", s->width);
    launch_define(k, "SUMS", sums);
    return k;
}
/* Adds the first kernel of wgmma_sums, or of wgmma with a head size over WIDE. Only wgmma_sums uses
 * dq and counter. */
static void add_statistics(struct cuda_launches *l, const struct attention_shape *s, int64_t tiles,
                           int64_t stats, int64_t dq, int64_t counter)
{
    struct cuda_launch *k =
        add_rows(l, s, "attention_hopper_rows", s->B * s->H * tiles, s->width <= WIDE);
    arg_in(k, "dy", DY);
    args_in(k, Y, "y lse");
    arg_scratch(k, "stats", stats);
    arg_scratch(k, "dq", dq);
    arg_scratch(k, "counter", counter);
    arg_lengths(k, s);
    arg_i32(k, "D", s->D);
    arg_i32(k, "tiles", tiles);
}

static void launches(const struct kernel_call *c, struct cuda_launches *l)
{
    static const enum part both[] = {DKV}, each[] = {DV, DK};
    struct attention_shape s = attention_shape_of(c, QKV);
    bool wide = s.width > WIDE;
    int64_t all = s.H + 2 * s.KV, tiles = ceil_div(s.T, STATS), blocks = s.B * s.H * tiles;
    int64_t stats = launch_scratch(l, blocks * 2 * STATS * 4);
    struct cuda_tensor of_stats = stats_of(blocks);
    struct cuda_tensor packed = attention_tensor(&s, all, OWN),
                       plain = attention_tensor(&s, s.H, OWN);
    struct cuda_tensor keys = attention_tensor(&s, all, layout_of(s.width, DQ)->tile);
    if (wide) add_statistics(l, &s, tiles, stats, stats, stats);

    struct cuda_launch *k = add_launch(l, c, DQ);
    k->dependent = wide;
    arg_tensor_map(k, "rows", ARG_IN, QKV, &packed);
    arg_tensor_map(k, "tiles", ARG_IN, QKV, &keys);
    arg_tensor_map(k, "dy", ARG_IN, DY, &plain);
    arg_tensor_map(k, "y", ARG_IN, Y, &plain);
    arg_tensor_map(k, "dqkv", ARG_OUT, 0, &packed);
    arg_in(k, "lse", LSE);
    arg_scratch(k, "stats", stats);
    arg_sizes(k, c, DQ);

    for (int i = 0; i < (wide ? COUNT_OF(each) : COUNT_OF(both)); i++) {
        enum part part = wide ? each[i] : both[i];
        k = add_launch(l, c, part);
        k->dependent = true;
        arg_tensor_map(k, "rows", ARG_IN, QKV, &packed);
        arg_tensor_map(k, "dy", ARG_IN, DY, &plain);
        arg_tensor_map(k, "dqkv", ARG_OUT, 0, &packed);
        arg_tensor_map(k, "stats", ARG_SCRATCH, stats, &of_stats);
        arg_sizes(k, c, part);
    }
}

/* Variant wgmma_sums has one kernel with 5 matmuls instead of 7, which adds up dq in memory. It is
 * faster for long sequences. Clocks per 128 x 128 pairs of query and key on an H200, all launches
 * (in parentheses: variant wgmma), at T 1024, 2048, 4096, 16384:
 *   64:           7509 (6023), 5879 (5361), 5078 (5134), 4612 (4943)
 *   64, 5 stages: 7536, 5901, 5115, 4641
 *   128:          13630 (10986), 9947 (9526), 8334 (8876), 7224 (8675) */
struct sums_layout {
    /* Constants of the kernel; `pairs` is the number of tiles of a pair. */
    int head, stages, item_stages, pairs;
    /* Items of a head that run concurrently and share the head's rows and sums in L2. */
    int ranks;
    int64_t T; /* the variant is faster than wgmma from this length on, causal */
};
static const struct sums_layout *sums_layout_of(int64_t width)
{
    static const struct sums_layout all[] = {
        {64, 4, 2, 2, 4, 4096},
        {128, 3, 1, 1, 4, 4096},
    };
    for (int i = 0; i < COUNT_OF(all); i++)
        if (all[i].head == width) return &all[i];
    return NULL;
}
/* Shared memory: K and V of items; Q, dY and statistics of tiles; dS of two tiles; dq of two
 * warpgroups. */
static unsigned sums_shared_bytes(const struct sums_layout *y)
{
    enum { BLOCK = 2 * OWN, SUMS_BARRIERS = 512 };
    int row = 2 * y->head, item = 2 * BLOCK * row, stage = 2 * OWN * row + 2 * STATS * 4;
    int ds = 2 * 2 * BLOCK * OWN, dq = 2 * 4 * OWN * OWN;
    return (unsigned)(ALIGN + y->item_stages * item + y->stages * stage + ds + dq + SUMS_BARRIERS);
}
/* The kernel has no dropout: no registers are left for its random numbers. */
static bool fits_sums(const struct kernel_call *c)
{
    return fits(c) && !c->numerics.deterministic && c->attr->attention.drop.threshold == 0 &&
           sums_layout_of(attention_shape_of(c, QKV).width);
}
static bool is_long(const struct kernel_call *c)
{
    return attention_shape_of(c, QKV).T >= sums_layout_of(attention_shape_of(c, QKV).width)->T;
}
static bool fits_sums_long(const struct kernel_call *c)
{
    return fits_sums(c) && is_long(c);
}
static bool fits_sums_short(const struct kernel_call *c)
{
    return fits_sums(c) && !is_long(c);
}

static struct cuda_launch *add_all(struct cuda_launches *l, const struct kernel_call *c,
                                   const struct sums_layout *y, int64_t items)
{
    struct attention_shape s = attention_shape_of(c, QKV);
    int64_t processors = cuda_device_of(c)->processors;
    struct cuda_launch *k = launch_add(l, "attention_hopper_dqkv.cu", "attention_hopper_dqkv",
                                       items < processors ? items : processors, 3 * WARPGROUP);
    k->arch = 90;
    k->dependent = true;
    k->shared_bytes = sums_shared_bytes(y);
    launch_define(k, "HEAD_SIZE", s.width);
    launch_define(k, "GROUP", s.H / s.KV);
    launch_define(k, "CAUSAL", c->attr->attention.causal);
    launch_define(k, "STAGES", y->stages);
    launch_define(k, "ITEM_STAGES", y->item_stages);
    return k;
}

static void launches_sums(const struct kernel_call *c, struct cuda_launches *l)
{
    struct attention_shape s = attention_shape_of(c, QKV);
    const struct sums_layout *y = sums_layout_of(s.width);
    int64_t tiles = ceil_div(s.T, OWN * y->pairs) * y->pairs, blocks = s.B * s.H * tiles;
    int64_t heads = s.B * s.KV, items = heads * ceil_div(s.T, 2 * OWN);
    int64_t section = ceil_div(cuda_device_of(c)->processors, y->ranks);
    int64_t stats = launch_scratch(l, blocks * 2 * STATS * 4);
    int64_t dq = launch_scratch(l, blocks * OWN * s.width * 4);
    int64_t counter = launch_scratch(l, 4), all = s.H + 2 * s.KV;
    struct cuda_tensor packed = attention_tensor(&s, all, OWN),
                       plain = attention_tensor(&s, s.H, OWN);
    struct cuda_tensor of_stats = stats_of(blocks);
    double scale = 1 / s.divisor;

    add_statistics(l, &s, tiles, stats, dq, counter);
    struct cuda_launch *k = add_all(l, c, y, items);
    arg_tensor_map(k, "rows", ARG_IN, QKV, &packed);
    arg_tensor_map(k, "dy", ARG_IN, DY, &plain);
    arg_tensor_map(k, "dqkv", ARG_OUT, 0, &packed);
    arg_tensor_map(k, "stats", ARG_SCRATCH, stats, &of_stats);
    arg_scratch(k, "dq", dq);
    arg_scratch(k, "counter", counter);
    arg_f32(k, "scale", scale);
    arg_lengths(k, &s);
    arg_i32(k, "heads", heads);
    arg_i32(k, "section", section < heads ? section : heads);
    arg_i32(k, "items", items);

    k = add_rows(l, &s, "attention_hopper_convert", blocks, true);
    k->dependent = true;
    arg_scratch(k, "dq", dq);
    arg_out(k, "dqkv", 0);
    arg_f32(k, "scale", scale);
    arg_lengths(k, &s);
    arg_i32(k, "D", s.D);
    arg_i32(k, "pitch", all * s.D);
    arg_i32(k, "tiles", tiles);
}

/* Rows in order of speed. The last row only makes wgmma_sums selectable for short sequences. */
const struct cuda_row attention_hopper_grad_rows[] = {
    CUDA_ROW(ATTENTION_GRAD, "wgmma_sums", "bbbfi", "b", fits_sums_long, launches_sums),
    CUDA_ROW(ATTENTION_GRAD, "wgmma", "bbbfi", "b", fits, launches),
    CUDA_ROW(ATTENTION_GRAD, "wgmma_sums", "bbbfi", "b", fits_sums_short, launches_sums),
    CUDA_ROWS_END,
};
