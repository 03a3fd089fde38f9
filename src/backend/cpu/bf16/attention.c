/* Flash attention in bf16, forward: products of bf16, everything else in fp32.
 *
 * Strips of 32 queries go along the keys, 256 at a time. The probabilities of a strip are rounded to bf16
 * and multiply v; their sums are of what they were before (Dao, arXiv 2307.08691). A strip lies with a query
 * in each line, so that q is taken as it lies, and one packing of k and v serves all strips of an item.
 *
 * Exponentials are of s - top, where top is near the largest score so far: as long as the true maximum is
 * less than 2^8 above it, nothing need be scaled again, and the result is the same up to rounding. */
#include "backend/cpu/attention_call.h"
#include "backend/cpu/bf16/kept.h"
#include "backend/cpu/bf16/pack.h"
#include "backend/cpu/bf16/softmax.h"
#include "backend/cpu/bf16/tables.h"
#include "base/rng.h"
#include "base/threads.h"

#include <omp.h>

enum { QUERIES = 32, KEYS = 128, MOST_STRIPS = 8, SLACK = 8 };

/* What a strip keeps from keys to keys. */
struct strip {
    float *top, *sum; /* (32), to the base 2; (32,16), lane by lane */
    float *y;         /* tiles of (32,D) */
    void *q;          /* tiles of (32,D) */
};

/* One thread's memory. */
struct work {
    void *k, *v;    /* tiles of up to 256 keys */
    float *s;       /* tiles of scores, then in the same place of probabilities */
    uint16_t *kept; /* (16,KEYS/16): a bit for each key */
    struct strip strip[MOST_STRIPS];
};

struct call {
    struct heads s;
    const bf16 *qkv;
    bf16 *y;
    float *lse;
    uint32_t step;
    int64_t rows; /* queries of an item */
};

static int64_t work_init(struct work *w, struct room room, int64_t D)
{
    int64_t across = tiles_of(D);
    w->k = take_room(&room, KEYS / DEEP * across * TILE_BYTES);
    w->v = take_room(&room, KEYS / DEEP * across * TILE_BYTES);
    w->s = take_room(&room, QUERIES * KEYS * 4);
    w->kept = take_room(&room, SIDE * KEYS / 8);
    for (int i = 0; i < MOST_STRIPS; i++) {
        w->strip[i].top = take_room(&room, QUERIES * 4);
        w->strip[i].sum = take_room(&room, QUERIES * SIDE * 4);
        w->strip[i].y = take_room(&room, 2 * across * TILE_BYTES);
        w->strip[i].q = take_room(&room, across * TILE_BYTES);
    }
    return room.taken;
}

/* Where a strip stands: queries q0 ... q0+31 against `tiles` * 16 keys from k0 on. */
struct place {
    int64_t bh, q0, k0, tiles;
};

/* Of the keys from k0 on, how many query q sees; less than 1: none. */
INLINE int64_t visible(const struct heads *s, const struct place *at, int64_t q)
{
    return (s->causal && q + 1 < s->T ? q + 1 : s->T) - at->k0;
}

/* So low that it is never the largest, and its exponential nothing; and a number, unlike what is lower. */
static const float UNSEEN = -1e30f;

/* The largest scores of 16 queries from q on, whose line of tiles is s; those that are not seen are made so
 * that nothing comes of them. */
INLINE vf largest_scores(const struct heads *h, const struct place *at, float *s, int64_t q)
{
    vf most[SIDE];
    for (int r = 0; r < SIDE; r++) most[r] = vf_all(UNSEEN);
    int64_t whole = min_i64(at->tiles, max_i64(0, visible(h, at, q)) / SIDE);
    int64_t j = 0;
    for (; j < whole; j++)
#pragma GCC unroll 16
        for (int r = 0; r < SIDE; r++)
            most[r] = vf_max(most[r], vf_load(s + j * C_TILE + r * SIDE));
    for (; j < at->tiles; j++)
        for (int r = 0; r < SIDE; r++) {
            float *line = s + j * C_TILE + r * SIDE;
            __mmask16 seen = (__mmask16)first_words(visible(h, at, q + r) - j * SIDE);
            vf x = _mm512_mask_mov_ps(vf_all(UNSEEN), seen, vf_load(line));
            vf_store(line, x);
            most[r] = vf_max(most[r], x);
        }
    return over_lanes(most, true);
}

/* Raises the top of 16 queries where their scores outgrow it, and lowers what was summed under the old. */
static void raise_top(struct strip *t, int64_t row, vf most, int64_t across)
{
    vf old = vf_load(t->top + row), top = vf_max(old, most);
    if (!_mm512_cmp_ps_mask(most, old + (float)SLACK, _CMP_GT_OQ)) return;
    float factor[SIDE];
    vf_store(factor, power_of_2(old - top));
    vf_store(t->top + row, top);
    for (int r = 0; r < SIDE; r++) {
        float *sum = t->sum + (row + r) * SIDE;
        vf_store(sum, vf_load(sum) * factor[r]);
        for (int64_t j = 0; j < across; j++) {
            float *y = t->y + (row / SIDE * across + j) * C_TILE + r * SIDE;
            vf_store(y, vf_load(y) * factor[r]);
        }
    }
}

/* Scores of one query become probabilities in the place of the first of them. */
INLINE void probabilities(float *s, int64_t pairs, float scale, float top, float *sum,
                          const uint16_t *kept)
{
    vf all = vf_load(sum), low = vf_all(top);
    char *p = (char *)s;
    for (int64_t j = 0; j < pairs; j++, p += TILE_BYTES) {
        vf a = power_of_2(vf_load(s + 2 * j * C_TILE) * scale - low);
        vf b = power_of_2(vf_load(s + (2 * j + 1) * C_TILE) * scale - low);
        all += a + b;
        uint32_t bits = ~0u;
        if (kept) memcpy(&bits, kept + 2 * j, sizeof bits);
        _mm512_store_si512(p, kept ? narrow_kept(bits, a, b) : narrow(a, b));
    }
    vf_store(sum, all);
}

/* Of the 16 queries at `row` of a strip. */
static void softmax(const struct call *c, struct work *w, struct strip *t, const struct place *at,
                    int64_t row)
{
    const struct heads *h = &c->s;
    float scale = h->scale * LOG2_E, *s = w->s + row / SIDE * at->tiles * C_TILE;
    vf most = largest_scores(h, at, s, at->q0 + row) * scale;
    if (at->k0 == 0)
        vf_store(t->top + row, most);
    else
        raise_top(t, row, most, tiles_of(h->D));
    const float *top = t->top + row;
    float *sum = t->sum + row * SIDE;
    const uint16_t *kept = w->kept;
    if (h->drop.threshold)
        for (int64_t r = 0; r < SIDE; r++, s += SIDE, sum += SIDE, kept += KEYS / SIDE)
            probabilities(s, at->tiles / 2, scale, top[r], sum, kept);
    else
        for (int64_t r = 0; r < SIDE; r++, s += SIDE, sum += SIDE)
            probabilities(s, at->tiles / 2, scale, top[r], sum, NULL);
}

static void draw(const struct call *c, struct work *w, const struct place *at, int64_t row)
{
    int64_t q16 = (at->q0 + row) / SIDE, k16 = at->k0 / SIDE;
    int64_t seen = visible(&c->s, at, at->q0 + row + SIDE - 1);
    for (int64_t j = 0; j < at->tiles && j * SIDE < seen; j++)
        VEC(kept_bits)(w->kept + j, KEYS / SIDE, &c->s.drop, c->step, at->bh, q16, k16 + j, false);
    VEC(tile_awake)();
}

/* One strip against the keys that lie packed. */
static void one_strip(const struct call *c, struct work *w, struct strip *t, const struct place *at)
{
    int64_t across = tiles_of(c->s.D), deep = across / 2;
    struct tile_product scores = {
        .rows = QUERIES / SIDE,
        .columns = at->tiles,
        .depth = deep,
        .a = t->q,
        .a_down = deep,
        .a_deep = 1,
        .b = w->k,
        .b_across = deep,
        .b_deep = 1,
        .c = w->s,
        .c_down = at->tiles,
        .c_across = 1,
    };
    VEC(tile_multiply)(&scores);
    for (int64_t row = 0; row < QUERIES; row += SIDE) {
        if (c->s.drop.threshold) draw(c, w, at, row);
        softmax(c, w, t, at, row);
        struct tile_product weighted = {
            .rows = 1,
            .columns = across,
            .depth = at->tiles / 2,
            .a = w->s + row / SIDE * at->tiles * C_TILE,
            .a_deep = 1,
            .b = w->v,
            .b_across = 1,
            .b_deep = across,
            .c = t->y + row / SIDE * across * C_TILE,
            .c_across = 1,
            .add = at->k0 > 0,
        };
        VEC(tile_multiply)(&weighted);
    }
}

static void finish(const struct call *c, struct strip *t, int64_t bh, int64_t q0)
{
    const struct heads *s = &c->s;
    float keep = s->drop.threshold ? dropout_scale(s->drop.threshold) : 1.0f;
    float lse[QUERIES], factor[QUERIES];
    for (int row = 0; row < QUERIES; row += SIDE) {
        vf lines[SIDE];
#pragma GCC unroll 16
        for (int r = 0; r < SIDE; r++) lines[r] = vf_load(t->sum + (row + r) * SIDE);
        vf sum = over_lanes(lines, false);
        vf_store(factor + row, keep / sum);
        vf_store(lse + row, (vf_load(t->top + row) + vf_log(sum) * LOG2_E) * LN_2);
    }
    struct pack_target y = {c->y + heads_row_at(s, bh, q0), s->C, min_i64(QUERIES, s->T - q0),
                            s->D};
    memcpy(c->lse + bh * s->T + q0, lse, (size_t)y.rows * sizeof(float));
    VEC(unpack_lines)(&y, t->y, factor);
}

static struct pack_source part(const struct call *c, int which, int64_t bh, int64_t row, int64_t n)
{
    return (struct pack_source){c->qkv + heads_part_at(&c->s, which, bh, row), c->s.row,
                                min_i64(n, c->s.T - row), c->s.D};
}

static void load_keys(const struct call *c, struct work *w, int64_t bh, int64_t k0, int64_t end)
{
    enum { PIECE = 64 };
    int64_t across = tiles_of(c->s.D);
    for (int64_t row = 0; row < KEYS && k0 + row < end; row += PIECE) {
        struct pack_source k = part(c, 1, bh, k0 + row, min_i64(PIECE, end - k0 - row));
        struct pack_source v = part(c, 2, bh, k0 + row, min_i64(PIECE, end - k0 - row));
        VEC(pack_turned)(tile_at(w->k, row / DEEP * across), &k);
        VEC(tile_awake)();
        VEC(pack_paired)(tile_at(w->v, row / DEEP * across), &v);
        VEC(tile_awake)();
    }
}

/* Queries `first` ... first+rows-1 of one head. */
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
            struct place at = {bh, q, k0, tiles_of(min_i64(KEYS, seen))};
            if (k0 == 0) {
                struct pack_source lines = part(c, 0, bh, q, QUERIES);
                VEC(pack_lines)(t->q, &lines);
                memset(t->sum, 0, QUERIES * SIDE * sizeof(float));
            }
            one_strip(c, w, t, &at);
            if (seen <= KEYS) finish(c, t, bh, q);
        }
    }
}

/* Queries of an item: as many as share one packing of the keys, but fewer where there are few heads, so that
 * each thread gets several. */
static int64_t rows_of_item(const struct heads *s, int threads)
{
    enum { SHARES = 4 };
    int64_t rows = MOST_STRIPS * QUERIES, heads = s->B * s->H;
    while (rows > 2 * QUERIES && heads * ceil_div(s->T, rows) < SHARES * threads) rows /= 2;
    return rows;
}

static enum status run_attention(const struct kernel_call *k)
{
    int threads = attention_threads(k);
    struct call c = {
        .s = heads_of(&k->in_type[0], k->attr),
        .qkv = k->in[0],
        .y = k->out[0],
        .lse = k->out[1],
        .step = (uint32_t) * (const int32_t *)k->in[1],
    };
    c.rows = rows_of_item(&c.s, threads);
    int64_t parts = ceil_div(c.s.T, c.rows), items = c.s.B * c.s.H * parts;
    attention_share(c.s.B * c.s.H, threads);
#pragma omp parallel num_threads(threads)
    {
        struct work w;
        int64_t bytes = work_init(&w, (struct room){0}, c.s.D);
        work_init(&w, room_of(k->scratch, omp_get_thread_num(), bytes), c.s.D);
        int64_t begun = threads_begin();
        VEC(tile_begin)();
        /* Under a causal mask the last queries of a head have most to do: they come first. */
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

static int64_t scratch_bytes(const struct kernel *row, const struct kernel_call *k)
{
    (void)row;
    struct work w;
    return omp_get_max_threads() *
           work_init(&w, (struct room){0}, heads_of(&k->in_type[0], k->attr).D);
}

const struct kernel VEC(attention_rows)[] = {
    {OP_ATTENTION, ISA_NAME, fits, scratch_bytes, attention_prepare, NULL, run_attention},
    {.run = NULL},
};
