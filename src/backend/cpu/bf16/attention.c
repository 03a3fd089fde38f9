/* Flash attention, forward, with bf16 matmuls; everything else is fp32.
 *
 * A strip of 32 queries goes through the keys, KEYS at a time. Its probabilities are rounded to
 * bf16 for the matmul with v; their sum is computed before the rounding (Dao, arXiv 2307.08691).
 * Each row of a strip's tiles is a query, so q is not transposed. An item of work is up to
 * MAX_STRIPS strips of one head; k and v are packed once for all of them.
 *
 * Exponentials are 2^(s - max), where max is near the largest score so far. If a score exceeds max
 * by more than SLACK, max is raised and the sums are rescaled. Only rounding depends on max. */
#include "backend/cpu/bf16/keep_mask.h"
#include "backend/cpu/bf16/pack.h"
#include "backend/cpu/bf16/softmax.h"
#include "backend/cpu/bf16/tables.h"
#include "backend/cpu/runtime/attention_call.h"
#include "base/rng.h"
#include "base/threads.h"

#include <omp.h>

enum { QUERIES = 32, KEYS = 128, MAX_STRIPS = 8, SLACK = 8 };

/* State of a strip between blocks of keys. */
struct strip {
    float *max; /* (32): maxima of the scores times log2(e), raised lazily (SLACK) */
    float *sum; /* (32,16): one sum for each lane */
    float *y;   /* tiles of (32,D) */
    void *q;    /* tiles of (32,D) */
};

/* One thread's memory. */
struct work {
    void *k, *v;    /* tiles of up to KEYS keys */
    float *s;       /* tiles of scores, which probabilities overwrite */
    uint16_t *kept; /* (16,KEYS/16): a bit for each key */
    struct strip strip[MAX_STRIPS];
};

struct call {
    struct heads s;
    const bf16 *qkv;
    bf16 *y;
    float *lse;
    uint32_t step;
    int64_t rows; /* queries of an item */
};

static int64_t work_init(struct work *w, struct scratch scratch, int64_t D)
{
    int64_t d_tiles = tiles_of(D);
    w->k = scratch_take(&scratch, KEYS / TILE_K * d_tiles * TILE_BYTES);
    w->v = scratch_take(&scratch, KEYS / TILE_K * d_tiles * TILE_BYTES);
    w->s = scratch_take(&scratch, QUERIES * KEYS * 4);
    w->kept = scratch_take(&scratch, TILE_SIDE * KEYS / 8);
    for (int i = 0; i < MAX_STRIPS; i++) {
        w->strip[i].max = scratch_take(&scratch, QUERIES * 4);
        w->strip[i].sum = scratch_take(&scratch, QUERIES * TILE_SIDE * 4);
        w->strip[i].y = scratch_take(&scratch, 2 * d_tiles * TILE_BYTES);
        w->strip[i].q = scratch_take(&scratch, d_tiles * TILE_BYTES);
    }
    return scratch.used;
}

/* A block of scores: queries q0 ... q0+31 against `tiles` * 16 keys from k0 on. */
struct block {
    int64_t bh, q0, k0, tiles;
};

/* The number of keys, from k0 on, that the mask lets query q see; less than 1: none. */
INLINE int64_t visible(const struct heads *s, const struct block *at, int64_t q)
{
    return (s->causal && q + 1 < s->T ? q + 1 : s->T) - at->k0;
}

/* The score of a masked key: its exponential is 0, and unlike -infinity it never causes a NaN. */
static const float MASKED = -1e30f;

/* The largest score of each of 16 queries from q on; masked scores in the tiles s become MASKED. */
INLINE vf mask_and_max(const struct heads *h, const struct block *at, float *s, int64_t q)
{
    vf largest[TILE_SIDE];
    for (int r = 0; r < TILE_SIDE; r++) largest[r] = vf_all(MASKED);
    int64_t whole = min_i64(at->tiles, max_i64(0, visible(h, at, q)) / TILE_SIDE);
    int64_t j = 0;
    for (; j < whole; j++)
#pragma GCC unroll 16
        for (int r = 0; r < TILE_SIDE; r++)
            largest[r] = vf_max(largest[r], vf_load(s + j * C_TILE_FLOATS + r * TILE_SIDE));
    for (; j < at->tiles; j++)
        for (int r = 0; r < TILE_SIDE; r++) {
            float *row = s + j * C_TILE_FLOATS + r * TILE_SIDE;
            __mmask16 seen = (__mmask16)first_lanes(visible(h, at, q + r) - j * TILE_SIDE);
            vf x = _mm512_mask_mov_ps(vf_all(MASKED), seen, vf_load(row));
            vf_store(row, x);
            largest[r] = vf_max(largest[r], x);
        }
    return reduce_rows(largest, true);
}

/* If a score of any of 16 queries exceeds its maximum by more than SLACK: raises all 16 maxima and
 * rescales the sums and y. */
static void raise_max(struct strip *t, int64_t row, vf largest, int64_t d_tiles)
{
    vf old = vf_load(t->max + row), max = vf_max(old, largest);
    if (!_mm512_cmp_ps_mask(largest, old + (float)SLACK, _CMP_GT_OQ)) return;
    float factor[TILE_SIDE];
    vf_store(factor, exp2_approx(old - max));
    vf_store(t->max + row, max);
    for (int r = 0; r < TILE_SIDE; r++) {
        float *sum = t->sum + (row + r) * TILE_SIDE;
        vf_store(sum, vf_load(sum) * factor[r]);
        for (int64_t j = 0; j < d_tiles; j++) {
            float *y = t->y + (row / TILE_SIDE * d_tiles + j) * C_TILE_FLOATS + r * TILE_SIDE;
            vf_store(y, vf_load(y) * factor[r]);
        }
    }
}

/* Overwrites the scores of one query with its probabilities in bf16. */
INLINE void probabilities(float *s, int64_t pairs, float scale, float max, float *sum,
                          const uint16_t *kept)
{
    vf total = vf_load(sum), shift = vf_all(max);
    char *p = (char *)s;
    for (int64_t j = 0; j < pairs; j++, p += TILE_BYTES) {
        vf a = exp2_approx(vf_load(s + 2 * j * C_TILE_FLOATS) * scale - shift);
        vf b = exp2_approx(vf_load(s + (2 * j + 1) * C_TILE_FLOATS) * scale - shift);
        total += a + b;
        uint32_t bits = ~0u;
        if (kept) memcpy(&bits, kept + 2 * j, sizeof bits);
        _mm512_store_si512(p, kept ? to_bf16_masked(bits, a, b) : to_bf16(a, b));
    }
    vf_store(sum, total);
}

/* Softmax of the 16 queries at `row` of a strip, over one block of keys. */
static void softmax(const struct call *c, struct work *w, struct strip *t, const struct block *at,
                    int64_t row)
{
    const struct heads *h = &c->s;
    float scale = h->scale * LOG2_E, *s = w->s + row / TILE_SIDE * at->tiles * C_TILE_FLOATS;
    vf largest = mask_and_max(h, at, s, at->q0 + row) * scale;
    if (at->k0 == 0)
        vf_store(t->max + row, largest);
    else
        raise_max(t, row, largest, tiles_of(h->D));
    const float *max = t->max + row;
    float *sum = t->sum + row * TILE_SIDE;
    const uint16_t *kept = w->kept;
    if (h->drop.threshold)
        for (int64_t r = 0; r < TILE_SIDE;
             r++, s += TILE_SIDE, sum += TILE_SIDE, kept += KEYS / TILE_SIDE)
            probabilities(s, at->tiles / 2, scale, max[r], sum, kept);
    else
        for (int64_t r = 0; r < TILE_SIDE; r++, s += TILE_SIDE, sum += TILE_SIDE)
            probabilities(s, at->tiles / 2, scale, max[r], sum, NULL);
}

static void make_mask(const struct call *c, struct work *w, const struct block *at, int64_t row)
{
    int64_t q16 = (at->q0 + row) / TILE_SIDE, k16 = at->k0 / TILE_SIDE;
    int64_t seen = visible(&c->s, at, at->q0 + row + TILE_SIDE - 1);
    for (int64_t j = 0; j < at->tiles && j * TILE_SIDE < seen; j++) {
        uint16_t *to = w->kept + j;
        VEC(keep_mask)(to, KEYS / TILE_SIDE, &c->s.drop, c->step, at->bh, q16, k16 + j, false);
    }
    VEC(tile_keep_awake)();
}

static void strip_against_keys(const struct call *c, struct work *w, struct strip *t,
                               const struct block *at)
{
    int64_t d_tiles = tiles_of(c->s.D), d_steps = d_tiles / 2;
    struct tile_matmul scores = {
        .rows = QUERIES / TILE_SIDE, .columns = at->tiles, .depth = d_steps};
    scores.a = t->q, scores.a_row_stride = d_steps, scores.a_k_stride = 1;
    scores.b = w->k, scores.b_column_stride = d_steps, scores.b_k_stride = 1;
    scores.c = w->s, scores.c_row_stride = at->tiles, scores.c_column_stride = 1;
    VEC(tile_matmul)(&scores);
    for (int64_t row = 0; row < QUERIES; row += TILE_SIDE) {
        if (c->s.drop.threshold) make_mask(c, w, at, row);
        softmax(c, w, t, at, row);
        struct tile_matmul weighted = {.rows = 1, .columns = d_tiles, .depth = at->tiles / 2};
        weighted.a = w->s + row / TILE_SIDE * at->tiles * C_TILE_FLOATS, weighted.a_k_stride = 1;
        weighted.b = w->v, weighted.b_column_stride = 1, weighted.b_k_stride = d_tiles;
        weighted.c = t->y + row / TILE_SIDE * d_tiles * C_TILE_FLOATS, weighted.c_column_stride = 1;
        weighted.add = at->k0 > 0;
        VEC(tile_matmul)(&weighted);
    }
}

static void finish(const struct call *c, struct strip *t, int64_t bh, int64_t q0)
{
    const struct heads *s = &c->s;
    float keep = s->drop.threshold ? dropout_scale(s->drop.threshold) : 1.0f;
    float lse[QUERIES], factor[QUERIES];
    for (int row = 0; row < QUERIES; row += TILE_SIDE) {
        vf sums[TILE_SIDE];
#pragma GCC unroll 16
        for (int r = 0; r < TILE_SIDE; r++) sums[r] = vf_load(t->sum + (row + r) * TILE_SIDE);
        vf sum = reduce_rows(sums, false);
        vf_store(factor + row, keep / sum);
        vf_store(lse + row, (vf_load(t->max + row) + vf_log(sum) * LOG2_E) * LN_2);
    }
    struct pack_target y = {c->y + heads_row_at(s, bh, q0), s->C, min_i64(QUERIES, s->T - q0),
                            s->D};
    memcpy(c->lse + bh * s->T + q0, lse, (size_t)y.rows * sizeof(float));
    VEC(unpack_rows)(&y, t->y, factor);
}

static struct pack_source part(const struct call *c, int which, int64_t bh, int64_t row, int64_t n)
{
    return (struct pack_source){c->qkv + heads_part_at(&c->s, which, bh, row), c->s.row_size,
                                min_i64(n, c->s.T - row), c->s.D};
}

static void load_keys(const struct call *c, struct work *w, int64_t bh, int64_t k0, int64_t end)
{
    enum { PIECE = 64 };
    int64_t d_tiles = tiles_of(c->s.D);
    for (int64_t row = 0; row < KEYS && k0 + row < end; row += PIECE) {
        struct pack_source k = part(c, 1, bh, k0 + row, min_i64(PIECE, end - k0 - row));
        struct pack_source v = part(c, 2, bh, k0 + row, min_i64(PIECE, end - k0 - row));
        VEC(pack_transposed)(tile_at(w->k, row / TILE_K * d_tiles), &k);
        VEC(tile_keep_awake)();
        VEC(pack_paired)(tile_at(w->v, row / TILE_K * d_tiles), &v);
        VEC(tile_keep_awake)();
    }
}

/* Queries first ... first+rows-1 of one head. */
static void one_item(const struct call *c, struct work *w, int64_t bh, int64_t first)
{
    const struct heads *s = &c->s;
    int64_t last = min_i64(first + c->rows, s->T), end = s->causal ? last : s->T;
    for (int64_t k0 = 0; k0 < end; k0 += KEYS) {
        load_keys(c, w, bh, k0, end);
        struct strip *t = w->strip;
        for (int64_t q = first; q < last; q += QUERIES, t++) {
            int64_t seen = (s->causal ? min_i64(q + QUERIES, s->T) : s->T) - k0;
            if (seen <= 0) continue;
            struct block at = {bh, q, k0, tiles_of(min_i64(KEYS, seen))};
            if (k0 == 0) {
                struct pack_source source = part(c, 0, bh, q, QUERIES);
                VEC(pack_rows)(t->q, &source);
                memset(t->sum, 0, QUERIES * TILE_SIDE * sizeof(float));
            }
            strip_against_keys(c, w, t, &at);
            if (seen <= KEYS) finish(c, t, bh, q);
        }
    }
}

/* The number of queries of an item: the most that can share packed keys, but fewer if there are
 * few heads, so that each thread gets several items. */
static int64_t rows_of_item(const struct heads *s, int threads)
{
    enum { ITEMS_PER_THREAD = 4 };
    int64_t rows = MAX_STRIPS * QUERIES, heads = s->B * s->H;
    while (rows > 2 * QUERIES && heads * (ceil_div(s->T, rows)) < ITEMS_PER_THREAD * threads)
        rows /= 2;
    return rows;
}

static enum status run_attention(const struct kernel_call *k)
{
    int threads = attention_threads(k);
    struct call c = {.s = heads_of(&k->in_type[0], k->attr), .qkv = k->in[0]};
    c.y = k->out[0], c.lse = k->out[1];
    c.step = (uint32_t) * (const int32_t *)k->in[1];
    c.rows = rows_of_item(&c.s, threads);
    int64_t parts = (c.s.T + c.rows - 1) / c.rows, items = c.s.B * c.s.H * parts;
    attention_schedule(c.s.B * c.s.H, threads);
#pragma omp parallel num_threads(threads)
    {
        struct work w;
        int64_t bytes = work_init(&w, (struct scratch){0}, c.s.D);
        work_init(&w, scratch_of(k->scratch, omp_get_thread_num(), bytes), c.s.D);
        int64_t begun = threads_begin();
        VEC(tile_begin)();
        /* Under a causal mask the last queries of a head have the most work, so they come first. */
#pragma omp for schedule(runtime) nowait
        for (int64_t i = 0; i < items; i++)
            one_item(&c, &w, i / parts, (parts - 1 - i % parts) * c.rows);
        VEC(tile_end)();
        threads_end(begun);
    }
    threads_joined();
    return ST_OK;
}

static bool fits(const struct kernel_call *c)
{
    return c->in_type[0].dtype == DT_BF16 && c->out_type[1].dtype == DT_F32;
}

static int64_t scratch_bytes(const struct kernel *, const struct kernel_call *k)
{
    struct work w;
    return omp_get_max_threads() *
           work_init(&w, (struct scratch){0}, heads_of(&k->in_type[0], k->attr).D);
}

const struct kernel VEC(attention_rows)[] = {
    {OP_ATTENTION, ISA_NAME, .fits = fits, scratch_bytes, attention_prepare, NULL, run_attention},
    {.run = NULL},
};
