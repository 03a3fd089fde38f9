/* Plain matmuls with WGMMA (compute capability 9.0). The gradient of a weight has few tiles and a
 * large K, which is split so that every SM has the same amount of work. */
#include "backend/cuda/cuda_kernels.h"
#include "backend/cuda/matmul/matmul.h"
#include "backend/cuda/runtime/tensor_map.h"

#include <string.h>

/* These constants have the same values in matmul_hopper_plain.cu. */
enum { WARPGROUP = 128, MATMUL_ROWS = 64, DEPTH = 64, CHUNK = 64, PANEL_ROWS = 16 };
enum { BARRIERS_BYTES = 1024, ROW_ELEMENTS = 8, SUM_THREADS = 256, STAGES_MOST = 7 };

/* Compile-time constants: `consumers` warpgroups, of 64 * `tiles` rows each, share a tile, or they
 * have tiles in turn (`alternate`), which hides most of the epilogue. A tile takes columns +
 * overhead units of time (fit to an H200, WIDEST also to an H100). `group` is the number of rows of
 * tiles that run column by column. */
struct tiling {
    int consumers, tiles, columns;
    bool alternate;
    int overhead, group;
};
enum { WIDE, NARROW, WIDEST, WHOLE, SQUARE = WHOLE, TALL };
static const struct tiling tilings[] = {
    [WIDE] = {2, 2, 192, true, 40, 4},     [NARROW] = {2, 2, 128, true, 40, 4},
    [WIDEST] = {2, 1, 256, false, 60, 16}, [SQUARE] = {3, 1, 192, false, 0, 0},
    [TALL] = {2, 2, 128, false, 0, 0},
};

/* How a call is computed: the tiling, of the output or its transpose, with whole or split K. */
struct schedule {
    const struct tiling *t;
    int64_t M, N, K; /* of the transposed output if `transposed` */
    int64_t tiles, blocks, group;
    bool transposed, split;
    int parts; /* of tiles, per block */
};

static int rows_of(const struct tiling *t)
{
    return MATMUL_ROWS * t->tiles * (t->alternate ? 1 : t->consumers);
}

static int64_t tile_bytes(const struct tiling *t)
{
    return 4 * (int64_t)rows_of(t) * t->columns;
}

/* Output panels per warp: as many as leave shared memory for at least four stages. */
static int panels_of(const struct tiling *t, const struct matmul *p)
{
    if (p->out == DT_F32) return 0;
    return t == &tilings[WIDE] || t == &tilings[WIDEST] ? 4 : t == &tilings[NARROW] ? 2 : 1;
}

static int64_t panel_bytes(const struct tiling *t, const struct matmul *p)
{
    return 2 * PANEL_ROWS * CHUNK * 4 * (int64_t)t->consumers * panels_of(t, p);
}

static int64_t stage_bytes(const struct tiling *t)
{
    return 2 * DEPTH * (rows_of(t) + (int64_t)t->columns);
}

static int64_t stages_of(const struct tiling *t, const struct matmul *p)
{
    enum { SHARED_BYTES = 227 << 10 };
    int64_t n = (SHARED_BYTES - BARRIERS_BYTES - panel_bytes(t, p)) / stage_bytes(t);
    return n < STAGES_MOST ? n : STAGES_MOST;
}

static int64_t shared_bytes(const struct tiling *t, const struct matmul *p)
{
    return stages_of(t, p) * stage_bytes(t) + panel_bytes(t, p) + BARRIERS_BYTES;
}

static struct schedule schedule_in(const struct tiling *t, const struct matmul *p, bool transposed)
{
    struct schedule w = {
        .t = t, .M = p->M, .N = p->N, .K = p->K, .transposed = transposed, .group = t->group};
    if (transposed) w.M = p->N, w.N = p->M;
    w.tiles = ceil_div(w.M, rows_of(t)) * ceil_div(w.N, t->columns);
    return w;
}

/* The estimated time: a block computes its tiles one after the other. */
static int64_t time_of(const struct schedule *w, int64_t blocks)
{
    return ceil_div(w->tiles, blocks) * (w->t->columns + w->t->overhead);
}

/* `tile` is the tile and group that the tuning table names, or NULL if it names none. */
static struct schedule schedule_whole(const struct matmul *p, int64_t processors,
                                      const struct tuning_tile *tile)
{
    struct schedule w = schedule_in(&tilings[WIDE], p, false);
    for (int i = 0; i < WHOLE; i++) {
        struct schedule other = schedule_in(&tilings[i], p, false);
        if (tile && tile->rows == rows_of(other.t) && tile->columns == other.t->columns) {
            w = other;
            w.group = tile->group;
            break;
        }
        if (time_of(&other, processors) < time_of(&w, processors)) w = other;
    }
    w.blocks = w.tiles < processors ? w.tiles : processors;
    return w;
}

int matmul_hopper_tiles(const struct matmul *p, int64_t processors,
                        struct tuning_tile ret[MATMUL_TILES])
{
    static const int groups[] = {4, 8, 16};
    static const double NEAR = 1.15;
    int n = 0;
    struct schedule own = schedule_whole(p, processors, NULL);
    double least = (double)time_of(&own, processors);
    ret[n++] = (struct tuning_tile){rows_of(own.t), own.t->columns, (int)own.group};
    for (int i = 0; i < WHOLE; i++) {
        struct schedule other = schedule_in(&tilings[i], p, false);
        if ((double)time_of(&other, processors) > NEAR * least) continue;
        for (int k = 0; k < COUNT_OF(groups); k++) {
            struct tuning_tile t = {rows_of(&tilings[i]), tilings[i].columns, groups[k]};
            if (memcmp(&t, &ret[0], sizeof t) != 0) ret[n++] = t;
        }
    }
    return p->ta ? 0 : n;
}

/* For few tiles and a large K. If blocks that each have an equal part of one tile keep nearly all
 * SMs busy, they run in phase and read operands from memory once. Else only the blocks of a column
 * of tiles run in phase, so the longer dimension becomes M. A transposed output is written in
 * pieces of 32 bytes, which is efficient for f32. */
static struct schedule schedule_split(const struct matmul *p, int64_t processors)
{
    enum { NEARLY = 94, ALL = 100 };
    struct schedule w = schedule_in(&tilings[SQUARE], p, false);
    int64_t steps = ceil_div(p->K, DEPTH), each = processors / w.tiles;
    if (each > steps) each = steps;
    w.split = each > 1;
    w.blocks = w.tiles * each;
    w.parts = 1;
    if (w.blocks * ALL < processors * NEARLY && w.tiles * steps > processors) {
        w = schedule_in(&tilings[TALL], p, p->M < p->N && p->out == DT_F32);
        w.split = w.tiles % processors != 0;
        w.blocks = w.tiles * steps < processors ? w.tiles * steps : processors;
        w.parts = 2;
    }
    w.group = ceil_div(w.M, rows_of(w.t));
    return w;
}

static struct schedule schedule_of(const struct matmul *p, const struct kernel_call *c)
{
    int64_t processors = cuda_device_of(c)->processors;
    char key[MATMUL_TEXT];
    if (p->ta) return schedule_split(p, processors);
    matmul_text(p, key);
    const struct tuning_candidate *own = tuning_candidate(tuning_find(c->tuning, key), MATMUL_OWN);
    return schedule_whole(p, processors, own && own->tile.rows ? &own->tile : NULL);
}

static bool is_length(int64_t n)
{
    return n > 0 && n <= INT32_MAX / 2;
}

/* Rows of n elements have the alignment that tensor maps require. */
static bool is_whole(int64_t n)
{
    return n % ROW_ELEMENTS == 0;
}

bool matmul_hopper_pitch(const struct matmul *p)
{
    enum { SECTOR_ELEMENTS = 16 };
    int64_t of_a = p->ta ? p->M : p->K, of_b = p->tb ? p->K : p->N;
    return of_a % SECTOR_ELEMENTS == 0 && of_b % SECTOR_ELEMENTS == 0;
}

bool matmul_hopper_plain_of(const struct kernel_call *c, struct matmul *ret)
{
    if (c->numerics.portable || !gemm_of(OP_MATMUL, c, ret)) return false;
    if (ret->in != DT_BF16 || ret->batch != 1 || (ret->ta && ret->tb)) return false;
    if (ret->ta && c->in_type[0].rank != 2) return false;
    if (!is_length(ret->M) || !is_length(ret->N) || !is_length(ret->K)) return false;
    int64_t tiles = ceil_div(ret->M, MATMUL_ROWS) * ceil_div(ret->N, MATMUL_ROWS);
    return is_whole(ret->N) && is_whole(ret->ta ? ret->M : ret->K) &&
           tiles * ceil_div(ret->K, DEPTH) <= INT32_MAX && ret->M * ret->N <= INT32_MAX;
}

static bool fits(const struct kernel_call *c)
{
    struct matmul p;
    return cuda_hopper(c) && matmul_hopper_plain_of(c, &p);
}

static void define(struct cuda_launch *k, const struct matmul *p, const struct schedule *w)
{
    k->arch = 90;
    launch_define(k, "CONSUMERS", w->t->consumers);
    launch_define(k, "TILES", w->t->tiles);
    launch_define(k, "COLUMNS", w->t->columns);
    launch_define(k, "STAGES", stages_of(w->t, p));
    launch_define(k, "PANELS", panels_of(w->t, p));
    launch_define(k, "ALTERNATE", w->t->alternate);
    launch_define(k, "A_TRANSPOSED", p->ta);
    launch_define(k, "B_TRANSPOSED", p->tb);
    launch_define(k, "Y_TRANSPOSED", w->transposed);
    launch_define(k, "SPLIT", w->split);
    launch_define_type(k, "T_Y", p->out);
}

static void args_lengths(struct cuda_launch *k, const struct schedule *w)
{
    arg_i32(k, "M", w->M);
    arg_i32(k, "N", w->N);
    arg_i32(k, "K", w->K);
    arg_i32(k, "group", w->group);
}

static void launch_sums(struct cuda_launches *l, const struct matmul *p, const struct schedule *w,
                        int64_t parts)
{
    int64_t quads = w->tiles * tile_bytes(w->t) / 16;
    struct cuda_launch *k =
        launch_add(l, "matmul_hopper_plain.cu", "matmul_parts", quads / SUM_THREADS, SUM_THREADS);
    define(k, p, w);
    k->dependent = true;
    arg_scratch(k, "part", parts);
    arg_out(k, "y", 0);
    args_lengths(k, w);
    arg_i32(k, "blocks", w->blocks);
}

static void launch(const struct kernel_call *c, struct cuda_launches *l)
{
    struct matmul p;
    bool fine = matmul_hopper_plain_of(c, &p);
    BUG_IF(!fine, "a matmul that does not fit its kernel");
    struct schedule w = schedule_of(&p, c);
    int64_t parts = launch_scratch(l, w.split ? w.parts * w.blocks * tile_bytes(w.t) : 0);
    struct cuda_launch *k = launch_add(l, "matmul_hopper_plain.cu", "matmul_plain", w.blocks,
                                       WARPGROUP * (w.t->consumers + 1));
    define(k, &p, &w);
    if (p.ta)
        arg_matrix(k, "a_map", ARG_IN, w.transposed, w.K, w.M, DEPTH, CHUNK);
    else
        arg_matrix(k, "a_map", ARG_IN, 0, w.M, w.K, rows_of(w.t), DEPTH);
    if (p.tb)
        arg_matrix(k, "b_map", ARG_IN, 1, w.N, w.K, w.t->columns, DEPTH);
    else
        arg_matrix(k, "b_map", ARG_IN, !w.transposed, w.K, w.N, DEPTH, CHUNK);
    if (panels_of(w.t, &p)) arg_matrix(k, "y_map", ARG_OUT, 0, w.M, w.N, PANEL_ROWS, CHUNK);
    arg_out(k, "y", 0);
    arg_scratch(k, "part", parts);
    args_lengths(k, &w);
    k->shared_bytes = (unsigned)shared_bytes(w.t, &p);
    if (w.split) launch_sums(l, &p, &w, parts);
}

const struct cuda_row matmul_hopper_plain_rows[] = {
    CUDA_ROW(MATMUL, "wgmma", NULL, NULL, fits, launch),
    CUDA_ROWS_END,
};
