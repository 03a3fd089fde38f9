/* Attention forward with wgmma, for compute capability 9.0. */
#include "backend/cuda/attention/attention_shape.h"
#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"

#include <math.h>

/* These constants have the same values in attention_hopper.cu. */
enum { WARPGROUP = 128, OWN_ROWS = 64, BARRIERS_BYTES = 512 };

/* `consumers` is the number of warpgroups with 64 rows each, `keys` the number of keys in a tile.
 * Shared memory holds `stages` tiles of keys, `v_stages` tiles of values and the queries or output
 * of `own_stages` items. With `turns`, warpgroups issue wgmma in turn. With `all`, items of equal
 * length are adjacent for all heads, not only for heads that fit into L2. */
struct tile {
    int consumers, keys, stages, v_stages, own_stages, turns;
    bool all;
};

/* The tile of a call: the first row that covers its head size, dropout and length. Registers limit
 * the number of keys: they hold scores, weights, output and random numbers. Clocks per 128 x 128
 * pairs of query and key on an H200 at T 1024, 2048, 4096, 16384, causal, with `turns` and `all`:
 *            all                  turns, all           turns                neither
 *  32        1767 1530 1423 1325  1764 1519 1410 1316
 *  64        2256 1852 1688 1560  2254 1869 1733 1640  2293 1978 1779 1695  2272 1937 1714 1611
 *  64, drop  3736 3481 3390 3319  3716 3399 3259 3167
 *  96        3621 2878 2403 2007  3536 2853 2362 2075  3313 2701 2370 2206  3427 2735 2351 2131
 *  96, drop                       4494 3975 3682 3460  4498 4105 3783 3660
 *  128       3963 3310 3067 2911  3721 3034 2596 2261  3635 2858 2518 2400  3977 3104 2805 2657
 *  128, drop 5346 4679 4448 4348  5279 4607 4383 4248  5420 4970 4620 4590  5575 5095 4731 4708
 * Head sizes over 128, in microseconds at T 1024 and 4096 (batch 4, 8 heads, causal), another H200:
 *  192: 64 keys, 2 tiles each, 2 own stages: 32.0 304, turns 32.7 309
 *  256: 64 keys, 3 and 2 tiles, 1 slot: 42.7 387, turns 42.8 387; 2 and 2 tiles, heads that fit
 *       into L2 adjacent: 51.0 411
 * They are not measured with dropout. With `turns`, size 256 spills registers if not causal. */
static struct tile tile_of(const struct kernel_call *c, const struct attention_shape *h)
{
    static const struct {
        int64_t width, T; /* at most */
        bool drop;
        struct tile tile;
    } all[] = {
        {32, INT64_MAX, false, {3, 128, 3, 3, 2, 1, true}},
        {64, INT64_MAX, false, {3, 128, 3, 3, 2, 0, true}},
        {64, INT64_MAX, true, {3, 64, 3, 3, 2, 1, true}},
        {96, 4096, false, {2, 192, 2, 2, 2, 1, false}},
        {96, INT64_MAX, false, {2, 192, 2, 2, 2, 0, true}},
        {96, INT64_MAX, true, {2, 128, 2, 2, 2, 1, true}},
        {128, 4096, false, {2, 128, 2, 2, 2, 1, false}},
        {128, INT64_MAX, false, {2, 128, 2, 2, 2, 1, true}},
        {128, INT64_MAX, true, {2, 128, 2, 2, 2, 1, true}},
        {192, INT64_MAX, false, {2, 64, 2, 2, 2, 0, true}},
        {192, INT64_MAX, true, {2, 64, 2, 2, 2, 0, true}},
        {256, INT64_MAX, false, {2, 64, 3, 2, 1, 0, true}},
        {256, INT64_MAX, true, {2, 64, 3, 2, 1, 0, true}},
    };
    bool drop = c->attr->attention.drop.threshold > 0;
    int i = 0;
    while (h->width > all[i].width || h->T > all[i].T || drop != all[i].drop) i++;
    return all[i].tile;
}

/* Shared memory: queries or output of the rows; stages of keys and of values; barriers. */
static int64_t tile_bytes(const struct attention_shape *h, const struct tile *t)
{
    int64_t own = t->own_stages * t->consumers * OWN_ROWS,
            tiles = (t->stages + t->v_stages) * t->keys;
    return 2 * h->width * (own + tiles) + BARRIERS_BYTES;
}

static bool fits(const struct kernel_call *c)
{
    struct attention_shape h = attention_shape_of(c, FORWARD_QKV);
    return cuda_hopper(c) && !c->numerics.portable && h.width > 0;
}

static void launches(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct dropout *drop = &c->attr->attention.drop;
    struct attention_shape h = attention_shape_of(c, FORWARD_QKV);
    struct tile t = tile_of(c, &h);
    int64_t rows = OWN_ROWS * t.consumers, items = ceil_div(h.T, rows) * h.B * h.H;
    int64_t blocks = cuda_device_of(c)->processors;
    struct cuda_launch *k =
        launch_add(l, "attention_hopper.cu", "attention_forward", items < blocks ? items : blocks,
                   WARPGROUP * (t.consumers + 1));
    k->arch = 90;
    launch_define(k, "HEAD", h.width);
    attention_define(k, c, &h);
    launch_define(k, "CONSUMERS", t.consumers);
    launch_define(k, "KEYS", t.keys);
    launch_define(k, "STAGES", t.stages);
    launch_define(k, "V_STAGES", t.v_stages);
    launch_define(k, "OWN_STAGES", t.own_stages);
    launch_define(k, "TURNS", t.turns);
    struct cuda_tensor queries = attention_tensor(&h, h.H + 2 * h.KV, OWN_ROWS);
    struct cuda_tensor keys = attention_tensor(&h, h.H + 2 * h.KV, t.keys);
    struct cuda_tensor output = attention_tensor(&h, h.H, OWN_ROWS);
    arg_tensor_map(k, "q_map", ARG_IN, FORWARD_QKV, &queries);
    arg_tensor_map(k, "k_map", ARG_IN, FORWARD_QKV, &keys);
    arg_tensor_map(k, "y_map", ARG_OUT, 0, &output);
    arg_in(k, "step", FORWARD_STEP);
    arg_out(k, "lse", 1);
    arg_lengths(k, &h);
    arg_i32(k, "BH", h.B * h.H);
    arg_i32(k, "heads_at_once", t.all ? h.B * h.H : attention_heads_at_once(c, &h));
    arg_f32(k, "scale", M_LOG2E / h.divisor);
    arg_dropout_bytes(k, drop);
    k->shared_bytes = (unsigned)tile_bytes(&h, &t);
}

const struct cuda_row attention_hopper_rows[] = {
    CUDA_ROW(ATTENTION, "wgmma", "bi", "bf", fits, launches),
    CUDA_ROWS_END,
};
