/* Flash attention, backward, with bf16 matmuls: probabilities are recomputed from the log-sum-exp.
 *
 * dv = p' dy, dp = dy v, ds = p (dp' - delta), dq = ds k, dk = ds q (Dao, arXiv 2307.08691,
 * algorithm 2), where p' and dp' are p and dp after dropout and delta = rowsum(dy y). p' and ds
 * are rounded to bf16 for their matmuls; all other intermediate results are fp32. The scale of the
 * scores multiplies the sums dq and dk; the scale of dropout multiplies dp' and the sum dv.
 *
 * Blocks of scores are stored transposed: each row is a key. So the matmuls for dv and dk read p'
 * and ds directly. The matmul for dq reads interleaved pairs of rows of ds; its result is
 * transposed.
 *
 * If there are enough heads, each thread takes whole heads: every block is computed once, with 5
 * matmuls. Otherwise an item of work is either KEYS keys, with their dk and dv, or KEYS queries,
 * with their dq; every block is then computed twice, with 7 matmuls in all. Where query heads share
 * keys, one item processes these heads one after another and sums dk and dv over them. Each sum has
 * the same order in both cases, so the results are the same bit for bit. */
#include "backend/cpu/bf16/keep_mask.h"
#include "backend/cpu/bf16/pack.h"
#include "backend/cpu/bf16/score_grad.h"
#include "backend/cpu/bf16/softmax.h"
#include "backend/cpu/bf16/tables.h"
#include "backend/cpu/runtime/attention_call.h"
#include "base/rng.h"
#include "base/threads.h"

#include <omp.h>

/* A block has up to KEYS keys and QUERIES queries; a patch is 32 keys by PATCH tiles of queries. */
enum { KEYS = 128, QUERIES = 128, PATCH = 4 };

/* One thread's memory. */
struct work {
    /* All queries of the part, as tiles. */
    void *q_transposed, *q_paired, *dy_transposed, *dy_paired;
    float *lse, *delta; /* lse is multiplied by log2(e) */
    float *dq;          /* transposed */
    /* The keys of a block. */
    void *k_rows, *v_rows, *k_transposed;
    /* Sums for the keys of a block; if heads share keys, for all keys of the part. */
    float *dk, *dv;
    /* Tiles of a block, keys by queries. */
    void *p, *ds, *ds_interleaved;
    /* One patch. */
    float *s, *dp;
    uint16_t *kept; /* (32,PATCH): a bit for each query */
};

struct call {
    struct heads s;
    const bf16 *dy, *qkv, *y;
    const float *lse;
    bf16 *dqkv;
    uint32_t step;
};

/* The work of one item: ranges of queries and keys, and `heads` query heads from bh on. If `keys`
 * is set, the item computes dk and dv, and the heads are all query heads that share the keys. If
 * `queries` is set, the item computes dq. q_first and k_first are multiples of 32. */
struct part {
    int64_t bh, heads, q_first, q_last, k_first, k_last;
    bool keys, queries;
};

/* A block of a head: keys k0 ... k0+keys-1, queries q0 ... q0+queries-1, multiples of 32. */
struct block {
    int64_t bh, k0, keys, q0, queries;
};

static int64_t work_init(struct work *w, struct scratch scratch, const struct heads *s)
{
    int64_t d_tiles = tiles_of(s->D), rows = tiles_of(s->T) * TILE_SIDE;
    int64_t q_bytes = rows / TILE_K * d_tiles * TILE_BYTES,
            k_bytes = KEYS / TILE_K * d_tiles * TILE_BYTES;
    void **query_buffers[] = {&w->q_transposed, &w->q_paired, &w->dy_transposed, &w->dy_paired};
    for (int i = 0; i < COUNT_OF(query_buffers); i++)
        *query_buffers[i] = scratch_take(&scratch, q_bytes);
    w->lse = scratch_take(&scratch, rows * 4);
    w->delta = scratch_take(&scratch, rows * 4);
    w->dq = scratch_take(&scratch, 2 * q_bytes);
    void **key_buffers[] = {&w->k_rows, &w->v_rows, &w->k_transposed};
    for (int i = 0; i < COUNT_OF(key_buffers); i++)
        *key_buffers[i] = scratch_take(&scratch, k_bytes);
    int64_t summed = s->group > 1 ? ceil_div(s->T, KEYS) : 1;
    w->dk = scratch_take(&scratch, summed * 2 * k_bytes);
    w->dv = scratch_take(&scratch, summed * 2 * k_bytes);
    w->s = scratch_take(&scratch, 2 * PATCH * TILE_BYTES);
    w->dp = scratch_take(&scratch, 2 * PATCH * TILE_BYTES);
    w->p = scratch_take(&scratch, KEYS * QUERIES * 2);
    w->ds = scratch_take(&scratch, KEYS * QUERIES * 2);
    w->ds_interleaved = scratch_take(&scratch, KEYS * QUERIES * 2);
    w->kept = scratch_take(&scratch, TILE_K * PATCH * 2);
    return scratch.used;
}

/* rowsum(a b) of 16 rows; 0 for rows beyond the last. */
static vf row_dots(const struct pack_source *a, const struct pack_source *b, int64_t row)
{
    vf sum[TILE_SIDE];
    for (int r = 0; r < TILE_SIDE; r++) {
        vf dot = {0};
        const bf16 *x = a->at + (row + r) * a->stride, *y = b->at + (row + r) * b->stride;
        for (int64_t i = 0; row + r < a->rows && i < a->columns; i += TILE_K) {
            __mmask32 valid = first_lanes(a->columns - i);
            dot = _mm512_dpbf16_ps(dot, (__m512bh)_mm512_maskz_loadu_epi16(valid, x + i),
                                   (__m512bh)_mm512_maskz_loadu_epi16(valid, y + i));
        }
        sum[r] = dot;
    }
    return reduce_rows(sum, false);
}

static struct pack_source part_of(const struct call *c, int which, int64_t bh, int64_t row,
                                  int64_t last)
{
    return (struct pack_source){c->qkv + heads_part_at(&c->s, which, bh, row), c->s.row_size,
                                min_i64(last, c->s.T) - row, c->s.D};
}

/* Rows are packed and unpacked PIECE at a time; between pieces the AMX unit is kept awake. */
enum { PIECE = 64 };

/* Packs PIECE queries of a part, from its row `row` on. */
static void load_queries(const struct call *c, struct work *w, const struct part *part, int64_t bh,
                         int64_t row)
{
    const struct heads *s = &c->s;
    int64_t first = part->q_first + row, tile = row / TILE_K * tiles_of(s->D);
    struct pack_source q = part_of(c, 0, bh, first, min_i64(first + PIECE, part->q_last));
    struct pack_source dy = {c->dy + heads_row_at(s, bh, first), s->C, q.rows, s->D}, y = dy;
    y.at = c->y + heads_row_at(s, bh, first);
    VEC(pack_transposed)(tile_at(w->q_transposed, tile), &q);
    VEC(pack_transposed)(tile_at(w->dy_transposed, tile), &dy);
    VEC(tile_keep_awake)();
    if (part->keys) {
        VEC(pack_paired)(tile_at(w->q_paired, tile), &q);
        VEC(pack_paired)(tile_at(w->dy_paired, tile), &dy);
    }
    for (int64_t i = 0; i < tiles_of(q.rows) * TILE_SIDE; i += TILE_SIDE) {
        __mmask16 valid = (__mmask16)first_lanes(q.rows - i);
        vf lse = _mm512_maskz_loadu_ps(valid, c->lse + bh * s->T + first + i);
        vf_store(w->lse + row + i, lse * LOG2_E);
        vf_store(w->delta + row + i, row_dots(&dy, &y, i));
    }
    VEC(tile_keep_awake)();
}

/* Packs PIECE keys from k0 + row on, of the block of keys that begins at k0. */
static void load_keys(const struct call *c, struct work *w, const struct part *part, int64_t k0,
                      int64_t row)
{
    int64_t tile = row / TILE_K * tiles_of(c->s.D);
    struct pack_source k = part_of(c, 1, part->bh, k0 + row, k0 + row + PIECE);
    struct pack_source v = part_of(c, 2, part->bh, k0 + row, k0 + row + PIECE);
    VEC(pack_rows)(tile_at(w->k_rows, tile), &k);
    VEC(pack_rows)(tile_at(w->v_rows, tile), &v);
    VEC(tile_keep_awake)();
    if (part->queries) VEC(pack_paired_transposed)(tile_at(w->k_transposed, tile), &k);
    VEC(tile_keep_awake)();
}

/* 32 keys of a block, from `key` on, and `tiles` tiles of its queries, from `tile` on. */
struct patch {
    int64_t key, tile, tiles;
};

static void make_mask(const struct call *c, struct work *w, const struct block *b,
                      const struct patch *at)
{
    int64_t k16 = (b->k0 + at->key) / TILE_SIDE, q16 = b->q0 / TILE_SIDE + at->tile;
    for (int64_t i = 0; i < 2 * at->tiles; i++) {
        uint16_t *to = w->kept + i % 2 * TILE_SIDE * PATCH + i / 2;
        VEC(keep_mask)(to, PATCH, &c->s.drop, c->step, b->bh, q16 + i / 2, k16 + i % 2, true);
    }
    VEC(tile_keep_awake)();
}

/* Computes the scores and dp of a patch, then p' and ds. */
static void one_patch(const struct call *c, struct work *w, const struct part *part,
                      const struct block *b, const struct patch *at)
{
    const struct heads *h = &c->s;
    int64_t d_steps = tiles_of(h->D) / 2, q_tiles = b->queries / TILE_SIDE;
    int64_t q_at = (b->q0 - part->q_first) / TILE_SIDE + at->tile; /* tile of the part's queries */
    struct tile_matmul scores = {.rows = 2, .columns = at->tiles, .depth = d_steps};
    scores.a = tile_at(w->k_rows, at->key / TILE_SIDE * d_steps);
    scores.a_row_stride = d_steps, scores.a_k_stride = 1;
    scores.b = tile_at(w->q_transposed, q_at * d_steps);
    scores.b_column_stride = d_steps, scores.b_k_stride = 1;
    scores.c = w->s, scores.c_row_stride = PATCH, scores.c_column_stride = 1;
    VEC(tile_matmul)(&scores);
    scores.a = tile_at(w->v_rows, at->key / TILE_SIDE * d_steps);
    scores.b = tile_at(w->dy_transposed, q_at * d_steps);
    scores.c = w->dp;
    VEC(tile_matmul)(&scores);

    int threshold = h->drop.threshold;
    if (threshold) make_mask(c, w, b, at);
    for (int64_t j = 0; j < at->tiles; j += 2) {
        int64_t tile = at->tile + j, p_at = at->key / TILE_SIDE * (q_tiles / 2) + tile / 2;
        struct score_block gradients = {
            .s = w->s + j * C_TILE_FLOATS,
            .dp = w->dp + j * C_TILE_FLOATS,
            .row_stride = PATCH,
            .scale = h->scale * LOG2_E,
            .lse = w->lse + (q_at + j) * TILE_SIDE,
            .delta = w->delta + (q_at + j) * TILE_SIDE,
            .keys = h->T - b->k0 - at->key,
            .diagonal = h->causal && b->q0 + tile * TILE_SIDE == b->k0 + at->key,
            .kept = threshold ? w->kept + j : NULL,
            .kept_stride = PATCH,
            .keep = threshold ? dropout_scale(threshold) : 1.0f,
            .p = tile_at(w->p, p_at),
            .ds = tile_at(w->ds, p_at),
            .p_row_stride = q_tiles / 2 * TILE_BYTES,
            .interleaved = tile_at(w->ds_interleaved, at->key / TILE_K * q_tiles + tile),
        };
        VEC(score_gradients)(&gradients);
    }
}

/* Computes p' and ds of 32 keys of a block, for all queries of the block that see these keys. */
static void one_group(const struct call *c, struct work *w, const struct part *part,
                      const struct block *b, int64_t key)
{
    int64_t end = b->queries / TILE_SIDE;
    struct patch at = {.key = key};
    if (c->s.causal) at.tile = max_i64(0, b->k0 + key - b->q0) / TILE_SIDE;
    for (; at.tile < end; at.tile += PATCH) {
        at.tiles = min_i64(PATCH, end - at.tile);
        one_patch(c, w, part, b, &at);
    }
}

/* Offset in dk and dv of the sums for the keys from k0 + row on. */
static int64_t keys_at(const struct call *c, const struct part *part, int64_t k0, int64_t row)
{
    if (c->s.group > 1) row += k0 - part->k_first;
    return row / TILE_SIDE * tiles_of(c->s.D) * C_TILE_FLOATS;
}

/* Adds the sums over the block's queries to dv and dk of 32 keys. */
static void add_to_keys(const struct call *c, struct work *w, const struct part *part,
                        const struct block *b, int64_t row)
{
    int64_t d_tiles = tiles_of(c->s.D), q_steps = b->queries / TILE_K;
    int64_t skipped = c->s.causal ? max_i64(0, b->k0 + row - b->q0) / TILE_K : 0;
    int64_t first = c->s.causal ? max_i64(part->q_first, b->k0 + row) : part->q_first;
    int64_t q_at = (b->q0 - part->q_first) / TILE_K + skipped;
    struct tile_matmul sum = {.rows = 2, .columns = d_tiles, .depth = q_steps - skipped};
    sum.a = tile_at(w->p, row / TILE_SIDE * q_steps + skipped);
    sum.a_row_stride = q_steps, sum.a_k_stride = 1;
    sum.b = tile_at(w->dy_paired, q_at * d_tiles);
    sum.b_column_stride = 1, sum.b_k_stride = d_tiles;
    sum.c = w->dv + keys_at(c, part, b->k0, row);
    sum.c_row_stride = d_tiles, sum.c_column_stride = 1;
    sum.add = b->bh > part->bh || b->q0 + skipped * TILE_K > first;
    if (sum.depth <= 0) return;
    VEC(tile_matmul)(&sum);
    sum.a = tile_at(w->ds, row / TILE_SIDE * q_steps + skipped);
    sum.b = tile_at(w->q_paired, q_at * d_tiles);
    sum.c = w->dk + keys_at(c, part, b->k0, row);
    VEC(tile_matmul)(&sum);
}

/* Adds the sums over the block's keys to dq of all its queries; queries on the diagonal see fewer
 * keys. */
static void add_to_queries(const struct call *c, struct work *w, const struct part *part,
                           const struct block *b)
{
    int64_t d_tiles = tiles_of(c->s.D), q_tiles = b->queries / TILE_SIDE, tiles;
    int64_t all = tiles_of(min_i64(part->q_last, c->s.T) - part->q_first);
    for (int64_t tile = 0; tile < q_tiles; tile += tiles) {
        int64_t seen = b->keys, past = b->q0 + tile * TILE_SIDE - b->k0;
        tiles = q_tiles - tile;
        if (c->s.causal && past + TILE_K < b->keys) {
            seen = past + TILE_K;
            tiles = 2;
        }
        int64_t q_at = (b->q0 - part->q_first) / TILE_SIDE + tile;
        struct tile_matmul sum = {.rows = d_tiles, .columns = tiles, .depth = seen / TILE_K};
        sum.a = w->k_transposed, sum.a_row_stride = 1, sum.a_k_stride = d_tiles;
        sum.b = tile_at(w->ds_interleaved, tile), sum.b_column_stride = 1, sum.b_k_stride = q_tiles;
        sum.c = w->dq + q_at * C_TILE_FLOATS, sum.c_row_stride = all, sum.c_column_stride = 1;
        sum.add = b->k0 > 0;
        VEC(tile_matmul)(&sum);
    }
}

static struct pack_target gradient_of(const struct call *c, int which, int64_t bh, int64_t row,
                                      int64_t last)
{
    return (struct pack_target){c->dqkv + heads_part_at(&c->s, which, bh, row), c->s.row_size,
                                min_i64(last, c->s.T) - row, c->s.D};
}

static void write_keys(const struct call *c, struct work *w, const struct part *part, int64_t k0,
                       int64_t row)
{
    const struct heads *s = &c->s;
    int64_t bh = part->bh, at = keys_at(c, part, k0, row);
    float keep = s->drop.threshold ? dropout_scale(s->drop.threshold) : 1.0f, factor[PIECE];
    struct pack_target dk = gradient_of(c, 1, bh, k0 + row, k0 + row + PIECE);
    struct pack_target dv = gradient_of(c, 2, bh, k0 + row, k0 + row + PIECE);
    for (int i = 0; i < PIECE; i++) factor[i] = s->scale;
    VEC(unpack_rows)(&dk, w->dk + at, factor);
    for (int i = 0; i < PIECE; i++) factor[i] = keep;
    VEC(unpack_rows)(&dv, w->dv + at, factor);
    VEC(tile_keep_awake)();
}

/* Writes the complete dq of the queries first ... end-1. */
static void write_queries(const struct call *c, struct work *w, const struct part *part, int64_t bh,
                          int64_t first, int64_t end)
{
    int64_t d_tiles = tiles_of(min_i64(part->q_last, c->s.T) - part->q_first);
    for (; first < min_i64(end, c->s.T); first += PIECE) {
        struct pack_target dq = gradient_of(c, 0, bh, first, min_i64(first + PIECE, end));
        const float *from = w->dq + (first - part->q_first) / TILE_SIDE * C_TILE_FLOATS;
        VEC(unpack_transposed)(&dq, from, d_tiles, c->s.scale);
        VEC(tile_keep_awake)();
    }
}

/* Processes one block of keys with all queries of the part, in head bh, that see these keys. */
static void run_keys(const struct call *c, struct work *w, const struct part *part, int64_t bh,
                     int64_t k0, int64_t keys)
{
    const struct heads *s = &c->s;
    int64_t q_end = (min_i64(part->q_last, s->T) + TILE_K - 1) / TILE_K * TILE_K;
    struct block b = {.bh = bh, .k0 = k0, .keys = keys};
    for (int64_t row = 0; row < keys; row += PIECE) load_keys(c, w, part, k0, row);
    b.q0 = s->causal ? max_i64(part->q_first, k0) : part->q_first;
    for (; b.q0 < q_end; b.q0 += QUERIES) {
        b.queries = min_i64(QUERIES, q_end - b.q0);
        for (int64_t key = 0; key < keys; key += TILE_K) one_group(c, w, part, &b, key);
        for (int64_t key = 0; part->keys && key < keys; key += TILE_K)
            add_to_keys(c, w, part, &b, key);
        if (part->queries) add_to_queries(c, w, part, &b);
    }
    bool last = bh == part->bh + part->heads - 1; /* dk and dv are complete */
    for (int64_t row = 0; part->keys && last && row < keys; row += PIECE)
        write_keys(c, w, part, k0, row);
    if (part->queries && s->causal)
        write_queries(c, w, part, bh, max_i64(part->q_first, k0), min_i64(part->q_last, k0 + KEYS));
}

static void run_head(const struct call *c, struct work *w, const struct part *part, int64_t bh)
{
    const struct heads *s = &c->s;
    int64_t rows = min_i64(part->q_last, s->T) - part->q_first;
    int64_t k_end = (min_i64(part->k_last, s->T) + TILE_K - 1) / TILE_K * TILE_K;
    if (s->causal) k_end = min_i64(k_end, part->q_first + tiles_of(rows) * TILE_SIDE);
    for (int64_t row = 0; row < rows; row += PIECE) load_queries(c, w, part, bh, row);
    for (int64_t k0 = part->k_first; k0 < k_end; k0 += KEYS)
        run_keys(c, w, part, bh, k0, min_i64(KEYS, k_end - k0));
    if (part->queries && !s->causal) write_queries(c, w, part, bh, part->q_first, part->q_last);
}

static void run_part(const struct call *c, struct work *w, const struct part *part)
{
    for (int64_t i = 0; i < part->heads; i++) run_head(c, w, part, part->bh + i);
}

/* Item i if heads are divided among threads: KEYS keys of all query heads that share them, or KEYS
 * queries of one head. The longest items come first. */
static struct part shared_item(const struct heads *s, int64_t i)
{
    int64_t groups = s->B * s->KV, items = groups + s->B * s->H, tiles = ceil_div(s->T, KEYS);
    int64_t at = i % items, first = i / items * KEYS, back = (tiles - 1) * KEYS - first;
    if (at >= groups) return (struct part){at - groups, 1, back, back + KEYS, 0, s->T, false, true};
    return (struct part){at * s->group, s->group, s->causal ? first : 0, s->T, first, first + KEYS,
                         true,          false};
}

static enum status run_attention_grad(const struct kernel_call *k)
{
    int threads = attention_threads(k);
    struct call c = {.s = heads_of(&k->in_type[1], k->attr), .dy = k->in[0], .qkv = k->in[1]};
    c.y = k->in[2], c.lse = k->in[3], c.dqkv = k->out[0];
    c.step = (uint32_t) * (const int32_t *)k->in[4];
    int64_t groups = c.s.B * c.s.KV, tiles = ceil_div(c.s.T, KEYS), group = c.s.group;
    bool whole = tiles == 1 || attention_whole_groups(groups, threads);
    int64_t items = whole ? groups : (groups + c.s.B * c.s.H) * tiles;
    attention_schedule(whole ? groups : 0, threads);
#pragma omp parallel num_threads(threads)
    {
        struct work w;
        int64_t bytes = work_init(&w, (struct scratch){0}, &c.s);
        work_init(&w, scratch_of(k->scratch, omp_get_thread_num(), bytes), &c.s);
        int64_t begun = threads_begin();
        VEC(tile_begin)();
#pragma omp for schedule(runtime) nowait
        for (int64_t i = 0; i < items; i++) {
            struct part part = {i * group, group, 0, c.s.T, 0, c.s.T, true, true};
            if (!whole) part = shared_item(&c.s, i);
            run_part(&c, &w, &part);
        }
        VEC(tile_end)();
        threads_end(begun);
    }
    threads_joined();
    return ST_OK;
}

static bool fits(const struct kernel_call *c)
{
    return c->in_type[1].dtype == DT_BF16 && c->in_type[3].dtype == DT_F32;
}

static int64_t scratch_bytes(const struct kernel *, const struct kernel_call *k)
{
    struct work w;
    struct heads s = heads_of(&k->in_type[1], k->attr);
    return omp_get_max_threads() * work_init(&w, (struct scratch){0}, &s);
}

const struct kernel VEC(attention_grad_rows)[] = {
    {OP_ATTENTION_GRAD, ISA_NAME, .fits = fits, scratch_bytes, attention_prepare, NULL,
     run_attention_grad},
    {.run = NULL},
};
