/* Flash attention in bf16, backward: probabilities are computed again from the log-sum-exp.
 *
 * dv = p' dy, dp = dy v, ds = p (dp' - delta), dq = ds k, dk = ds q (Dao, arXiv 2307.08691, algorithm 2),
 * where dropout makes p' of p and dp' of dp, and delta = rowsum(dy y). p' and ds are rounded to bf16 for
 * their products; all else is fp32. The scale of the scores and that of dropout are applied to sums.
 *
 * Blocks of keys and queries lie turned, a key in each line: so p' and ds are what the products for dv and
 * dk want, and pairs of lines of ds, woven, what the product for dq wants, which comes out turned.
 *
 * Where there are heads enough, each thread takes whole heads: every block is computed once, 5 products.
 * Otherwise dk, dv are done by tiles of keys and dq by rows of queries, 7 products. Heads of queries that
 * share keys follow one another, and dk, dv are summed over them. Each sum is made in the same order either way,
 * so the bits do not tell them apart. */
#include "backend/cpu/attention_call.h"
#include "backend/cpu/bf16/kept.h"
#include "backend/cpu/bf16/pack.h"
#include "backend/cpu/bf16/score_grad.h"
#include "backend/cpu/bf16/softmax.h"
#include "backend/cpu/bf16/tables.h"
#include "base/rng.h"
#include "base/threads.h"

#include <omp.h>

/* A block has up to so many keys and queries; a patch is 32 keys and PATCH tiles of queries. */
enum { KEYS = 128, QUERIES = 128, PATCH = 4 };

/* One thread's memory. */
struct work {
    /* For queries of the part, by tiles. */
    void *q_turned, *q_paired, *dy_turned, *dy_paired;
    float *lse, *delta; /* lse to the base 2 */
    float *dq;          /* turned */
    /* For the keys of a block. */
    void *k_lines, *v_lines, *k_turned;
    /* For the keys of a block; where heads share them, for all keys of a part. */
    float *dk, *dv;
    /* Of a block, tiles of (keys, queries). */
    void *p, *ds, *ds_woven;
    /* Of a patch. */
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

/* What one item computes: these queries and keys, and which of the gradients, of `heads` heads of queries from bh
 * on: with those of keys all that share them. */
struct part {
    int64_t bh, heads, q_first, q_last, k_first, k_last; /* first: multiples of 32 */
    bool keys, queries;
};

/* A block of a head: keys k0 ... k0+keys-1, queries q0 ... q0+queries-1, multiples of 32. */
struct block {
    int64_t bh, k0, keys, q0, queries;
};

static int64_t work_init(struct work *w, struct room room, const struct heads *s)
{
    int64_t across = tiles_of(s->D), rows = tiles_of(s->T) * SIDE;
    int64_t q_bytes = rows / DEEP * across * TILE_BYTES,
            k_bytes = KEYS / DEEP * across * TILE_BYTES;
    void **of_queries[] = {&w->q_turned, &w->q_paired, &w->dy_turned, &w->dy_paired};
    for (int i = 0; i < COUNT_OF(of_queries); i++) *of_queries[i] = take_room(&room, q_bytes);
    w->lse = take_room(&room, rows * 4);
    w->delta = take_room(&room, rows * 4);
    w->dq = take_room(&room, 2 * q_bytes);
    void **of_keys[] = {&w->k_lines, &w->v_lines, &w->k_turned};
    for (int i = 0; i < COUNT_OF(of_keys); i++) *of_keys[i] = take_room(&room, k_bytes);
    int64_t summed = s->group > 1 ? ceil_div(s->T, KEYS) : 1;
    w->dk = take_room(&room, summed * 2 * k_bytes);
    w->dv = take_room(&room, summed * 2 * k_bytes);
    w->s = take_room(&room, 2 * PATCH * TILE_BYTES);
    w->dp = take_room(&room, 2 * PATCH * TILE_BYTES);
    w->p = take_room(&room, KEYS * QUERIES * 2);
    w->ds = take_room(&room, KEYS * QUERIES * 2);
    w->ds_woven = take_room(&room, KEYS * QUERIES * 2);
    w->kept = take_room(&room, DEEP * PATCH * 2);
    return room.taken;
}

/* rowsum(dy y) of 16 rows, 0 behind the last. */
static vf products_of_rows(const struct pack_source *a, const struct pack_source *b, int64_t row)
{
    vf sum[SIDE];
    for (int r = 0; r < SIDE; r++) {
        vf all = {0};
        const bf16 *x = a->at + (row + r) * a->stride, *y = b->at + (row + r) * b->stride;
        for (int64_t i = 0; row + r < a->rows && i < a->columns; i += DEEP) {
            __mmask32 there = first_words(a->columns - i);
            all = _mm512_dpbf16_ps(all, (__m512bh)_mm512_maskz_loadu_epi16(there, x + i),
                                   (__m512bh)_mm512_maskz_loadu_epi16(there, y + i));
        }
        sum[r] = all;
    }
    return over_lanes(sum, false);
}

static struct pack_source part_of(const struct call *c, int which, int64_t bh, int64_t row,
                                  int64_t last)
{
    return (struct pack_source){c->qkv + heads_part_at(&c->s, which, bh, row), c->s.row,
                                min_i64(last, c->s.T) - row, c->s.D};
}

/* Operands are made and results written in pieces, between which the tile unit is kept awake. */
enum { PIECE = 64 };

/* PIECE queries of a part from `row` of it on. */
static void load_queries(const struct call *c, struct work *w, const struct part *part, int64_t bh,
                         int64_t row)
{
    const struct heads *s = &c->s;
    int64_t first = part->q_first + row, tile = row / DEEP * tiles_of(s->D);
    struct pack_source q = part_of(c, 0, bh, first, min_i64(first + PIECE, part->q_last));
    struct pack_source dy = {c->dy + heads_row_at(s, bh, first), s->C, q.rows, s->D}, y = dy;
    y.at = c->y + heads_row_at(s, bh, first);
    VEC(pack_turned)(tile_at(w->q_turned, tile), &q);
    VEC(pack_turned)(tile_at(w->dy_turned, tile), &dy);
    VEC(tile_awake)();
    if (part->keys) {
        VEC(pack_paired)(tile_at(w->q_paired, tile), &q);
        VEC(pack_paired)(tile_at(w->dy_paired, tile), &dy);
    }
    for (int64_t i = 0; i < tiles_of(q.rows) * SIDE; i += SIDE) {
        __mmask16 there = (__mmask16)first_words(q.rows - i);
        vf lse = _mm512_maskz_loadu_ps(there, c->lse + bh * s->T + first + i);
        vf_store(w->lse + row + i, lse * LOG2_E);
        vf_store(w->delta + row + i, products_of_rows(&dy, &y, i));
    }
    VEC(tile_awake)();
}

/* PIECE keys from k0 + row on, of the tile of keys that begins at k0. */
static void load_keys(const struct call *c, struct work *w, const struct part *part, int64_t k0,
                      int64_t row)
{
    int64_t tile = row / DEEP * tiles_of(c->s.D);
    struct pack_source k = part_of(c, 1, part->bh, k0 + row, k0 + row + PIECE);
    struct pack_source v = part_of(c, 2, part->bh, k0 + row, k0 + row + PIECE);
    VEC(pack_lines)(tile_at(w->k_lines, tile), &k);
    VEC(pack_lines)(tile_at(w->v_lines, tile), &v);
    VEC(tile_awake)();
    if (part->queries) VEC(pack_paired_turned)(tile_at(w->k_turned, tile), &k);
    VEC(tile_awake)();
}

/* 32 keys against up to 64 queries: where they begin in their block. */
struct patch {
    int64_t key, tile, tiles;
};

static void draw(const struct call *c, struct work *w, const struct block *b,
                 const struct patch *at)
{
    int64_t k16 = (b->k0 + at->key) / SIDE, q16 = b->q0 / SIDE + at->tile;
    for (int64_t i = 0; i < 2 * at->tiles; i++) {
        uint16_t *to = w->kept + i % 2 * SIDE * PATCH + i / 2;
        VEC(kept_bits)(to, PATCH, &c->s.drop, c->step, b->bh, q16 + i / 2, k16 + i % 2, true);
    }
    VEC(tile_awake)();
}

/* Scores and dp, then p' and ds. */
static void one_patch(const struct call *c, struct work *w, const struct part *part,
                      const struct block *b, const struct patch *at)
{
    const struct heads *h = &c->s;
    int64_t deep = tiles_of(h->D) / 2, q_tiles = b->queries / SIDE;
    int64_t q_at = (b->q0 - part->q_first) / SIDE + at->tile; /* tile of the part's queries */
    struct tile_product scores = {
        .rows = 2,
        .columns = at->tiles,
        .depth = deep,
        .a = tile_at(w->k_lines, at->key / SIDE * deep),
        .a_down = deep,
        .a_deep = 1,
        .b = tile_at(w->q_turned, q_at * deep),
        .b_across = deep,
        .b_deep = 1,
        .c = w->s,
        .c_down = PATCH,
        .c_across = 1,
    };
    VEC(tile_multiply)(&scores);
    scores.a = tile_at(w->v_lines, at->key / SIDE * deep);
    scores.b = tile_at(w->dy_turned, q_at * deep);
    scores.c = w->dp;
    VEC(tile_multiply)(&scores);

    int threshold = h->drop.threshold;
    if (threshold) draw(c, w, b, at);
    for (int64_t j = 0; j < at->tiles; j += 2) {
        int64_t tile = at->tile + j, p_at = at->key / SIDE * (q_tiles / 2) + tile / 2;
        struct score_block gradients = {
            .s = w->s + j * C_TILE,
            .dp = w->dp + j * C_TILE,
            .down = PATCH,
            .scale = h->scale * LOG2_E,
            .lse = w->lse + (q_at + j) * SIDE,
            .delta = w->delta + (q_at + j) * SIDE,
            .keys = h->T - b->k0 - at->key,
            .diagonal = h->causal && b->q0 + tile * SIDE == b->k0 + at->key,
            .kept = threshold ? w->kept + j : NULL,
            .kept_stride = PATCH,
            .keep = threshold ? dropout_scale(threshold) : 1.0f,
            .p = tile_at(w->p, p_at),
            .ds = tile_at(w->ds, p_at),
            .p_down = q_tiles / 2 * TILE_BYTES,
            .woven = tile_at(w->ds_woven, at->key / DEEP * q_tiles + tile),
        };
        VEC(score_gradients)(&gradients);
    }
}

/* 32 keys against all queries of a block that see them. */
static void one_group(const struct call *c, struct work *w, const struct part *part,
                      const struct block *b, int64_t key)
{
    int64_t end = b->queries / SIDE;
    struct patch at = {.key = key};
    if (c->s.causal) at.tile = max_i64(0, b->k0 + key - b->q0) / SIDE;
    for (; at.tile < end; at.tile += PATCH) {
        at.tiles = min_i64(PATCH, end - at.tile);
        one_patch(c, w, part, b, &at);
    }
}

/* Where the sums of the keys from k0 + row on lie. */
static int64_t keys_at(const struct call *c, const struct part *part, int64_t k0, int64_t row)
{
    if (c->s.group > 1) row += k0 - part->k_first;
    return row / SIDE * tiles_of(c->s.D) * C_TILE;
}

/* dv and dk of 32 keys. */
static void add_to_keys(const struct call *c, struct work *w, const struct part *part,
                        const struct block *b, int64_t row)
{
    int64_t across = tiles_of(c->s.D), q_deep = b->queries / DEEP;
    int64_t skipped = c->s.causal ? max_i64(0, b->k0 + row - b->q0) / DEEP : 0;
    int64_t first = c->s.causal ? max_i64(part->q_first, b->k0 + row) : part->q_first;
    int64_t q_at = (b->q0 - part->q_first) / DEEP + skipped;
    struct tile_product sum = {
        .rows = 2,
        .columns = across,
        .depth = q_deep - skipped,
        .a = tile_at(w->p, row / SIDE * q_deep + skipped),
        .a_down = q_deep,
        .a_deep = 1,
        .b = tile_at(w->dy_paired, q_at * across),
        .b_across = 1,
        .b_deep = across,
        .c = w->dv + keys_at(c, part, b->k0, row),
        .c_down = across,
        .c_across = 1,
        .add = b->bh > part->bh || b->q0 + skipped * DEEP > first,
    };
    if (sum.depth <= 0) return;
    VEC(tile_multiply)(&sum);
    sum.a = tile_at(w->ds, row / SIDE * q_deep + skipped);
    sum.b = tile_at(w->q_paired, q_at * across);
    sum.c = w->dk + keys_at(c, part, b->k0, row);
    VEC(tile_multiply)(&sum);
}

/* dq of all queries of the block; those on the diagonal see fewer keys. */
static void add_to_queries(const struct call *c, struct work *w, const struct part *part,
                           const struct block *b)
{
    int64_t across = tiles_of(c->s.D), q_tiles = b->queries / SIDE, tiles;
    int64_t all = tiles_of(min_i64(part->q_last, c->s.T) - part->q_first);
    for (int64_t tile = 0; tile < q_tiles; tile += tiles) {
        int64_t seen = b->keys, past = b->q0 + tile * SIDE - b->k0;
        tiles = q_tiles - tile;
        if (c->s.causal && past + DEEP < b->keys) {
            seen = past + DEEP;
            tiles = 2;
        }
        int64_t q_at = (b->q0 - part->q_first) / SIDE + tile;
        struct tile_product sum = {
            .rows = across,
            .columns = tiles,
            .depth = seen / DEEP,
            .a = w->k_turned,
            .a_down = 1,
            .a_deep = across,
            .b = tile_at(w->ds_woven, tile),
            .b_across = 1,
            .b_deep = q_tiles,
            .c = w->dq + q_at * C_TILE,
            .c_down = all,
            .c_across = 1,
            .add = b->k0 > 0,
        };
        VEC(tile_multiply)(&sum);
    }
}

static struct pack_target gradient_of(const struct call *c, int which, int64_t bh, int64_t row,
                                      int64_t last)
{
    return (struct pack_target){c->dqkv + heads_part_at(&c->s, which, bh, row), c->s.row,
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
    VEC(unpack_lines)(&dk, w->dk + at, factor);
    for (int i = 0; i < PIECE; i++) factor[i] = keep;
    VEC(unpack_lines)(&dv, w->dv + at, factor);
    VEC(tile_awake)();
}

/* dq of the queries first ... end-1, which no further keys will change. */
static void write_queries(const struct call *c, struct work *w, const struct part *part, int64_t bh,
                          int64_t first, int64_t end)
{
    int64_t across = tiles_of(min_i64(part->q_last, c->s.T) - part->q_first);
    for (; first < min_i64(end, c->s.T); first += PIECE) {
        struct pack_target dq = gradient_of(c, 0, bh, first, min_i64(first + PIECE, end));
        const float *from = w->dq + (first - part->q_first) / SIDE * C_TILE;
        VEC(unpack_turned)(&dq, from, across, c->s.scale);
        VEC(tile_awake)();
    }
}

/* One tile of keys and all queries of a head that see it. */
static void run_keys(const struct call *c, struct work *w, const struct part *part, int64_t bh,
                     int64_t k0, int64_t keys)
{
    const struct heads *s = &c->s;
    int64_t q_end = round_up(min_i64(part->q_last, s->T), DEEP);
    struct block b = {.bh = bh, .k0 = k0, .keys = keys};
    for (int64_t row = 0; row < keys; row += PIECE) load_keys(c, w, part, k0, row);
    b.q0 = s->causal ? max_i64(part->q_first, k0) : part->q_first;
    for (; b.q0 < q_end; b.q0 += QUERIES) {
        b.queries = min_i64(QUERIES, q_end - b.q0);
        for (int64_t key = 0; key < keys; key += DEEP) one_group(c, w, part, &b, key);
        for (int64_t key = 0; part->keys && key < keys; key += DEEP)
            add_to_keys(c, w, part, &b, key);
        if (part->queries) add_to_queries(c, w, part, &b);
    }
    bool last = bh == part->bh + part->heads - 1; /* no further head adds to dk and dv */
    for (int64_t row = 0; part->keys && last && row < keys; row += PIECE)
        write_keys(c, w, part, k0, row);
    if (part->queries && s->causal)
        write_queries(c, w, part, bh, max_i64(part->q_first, k0), min_i64(part->q_last, k0 + KEYS));
}

/* One head of queries. */
static void run_head(const struct call *c, struct work *w, const struct part *part, int64_t bh)
{
    const struct heads *s = &c->s;
    int64_t rows = min_i64(part->q_last, s->T) - part->q_first;
    int64_t k_end = round_up(min_i64(part->k_last, s->T), DEEP);
    if (s->causal) k_end = min_i64(k_end, part->q_first + tiles_of(rows) * SIDE);
    for (int64_t row = 0; row < rows; row += PIECE) load_queries(c, w, part, bh, row);
    for (int64_t k0 = part->k_first; k0 < k_end; k0 += KEYS)
        run_keys(c, w, part, bh, k0, min_i64(KEYS, k_end - k0));
    if (part->queries && !s->causal) write_queries(c, w, part, bh, part->q_first, part->q_last);
}

static void run_part(const struct call *c, struct work *w, const struct part *part)
{
    for (int64_t i = 0; i < part->heads; i++) run_head(c, w, part, part->bh + i);
}

/* Rounds of whole groups of heads, 5 products each, against shares of 7 products. */
static bool whole_groups(int64_t groups, int64_t threads)
{
    return round_up(groups, threads) * 5 <= groups * 7;
}

/* Item i of shares: tiles of 64 keys, and as many queries, those first that have most to do. */
static struct part share(const struct heads *s, int64_t i)
{
    int64_t groups = s->B * s->KV, both = groups + s->B * s->H, tiles = ceil_div(s->T, KEYS);
    int64_t at = i % both, first = i / both * KEYS, back = (tiles - 1) * KEYS - first;
    if (at >= groups) return (struct part){at - groups, 1, back, back + KEYS, 0, s->T, false, true};
    return (struct part){at * s->group, s->group, s->causal ? first : 0, s->T, first, first + KEYS,
                         true,          false};
}

static enum status run_attention_grad(const struct kernel_call *k)
{
    int threads = attention_threads(k);
    struct call c = {
        .s = heads_of(&k->in_type[1], k->attr),
        .dy = k->in[0],
        .qkv = k->in[1],
        .y = k->in[2],
        .lse = k->in[3],
        .dqkv = k->out[0],
        .step = (uint32_t) * (const int32_t *)k->in[4],
    };
    int64_t groups = c.s.B * c.s.KV, tiles = ceil_div(c.s.T, KEYS), group = c.s.group;
    bool whole = tiles == 1 || whole_groups(groups, threads);
    int64_t items = whole ? groups : (groups + c.s.B * c.s.H) * tiles;
    attention_share(whole ? groups : 0, threads);
#pragma omp parallel num_threads(threads)
    {
        struct work w;
        int64_t bytes = work_init(&w, (struct room){0}, &c.s);
        work_init(&w, room_of(k->scratch, omp_get_thread_num(), bytes), &c.s);
        int64_t begun = threads_begin();
        VEC(tile_begin)();
#pragma omp for schedule(runtime) nowait
        for (int64_t i = 0; i < items; i++) {
            struct part part = {i * group, group, 0, c.s.T, 0, c.s.T, true, true};
            if (!whole) part = share(&c.s, i);
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

static int64_t scratch_bytes(const struct kernel *row, const struct kernel_call *k)
{
    (void)row;
    struct work w;
    struct heads s = heads_of(&k->in_type[1], k->attr);
    return omp_get_max_threads() * work_init(&w, (struct room){0}, &s);
}

const struct kernel VEC(attention_grad_rows)[] = {
    {OP_ATTENTION_GRAD, ISA_NAME, fits, scratch_bytes, attention_prepare, NULL, run_attention_grad},
    {.run = NULL},
};
