/* Flash attention, backward: probabilities are recomputed from the log-sum-exp, a tile at a time.
 *
 * dv = p' dy, dp = dy v, ds = p (dp - delta), dq = ds k, dk = ds q (Dao, arXiv 2307.08691,
 * algorithm 2), where p' is p after dropout, dp has the same mask, and delta = rowsum(dy y).
 * Dropout's scale is folded into dy; the scale of the scores is folded into q and multiplies dq.
 *
 * If there are enough heads, each thread takes whole heads: every tile is computed once, with 5
 * matmuls. Otherwise an item of work is either a tile of keys, with its dk and dv, or a tile of
 * queries, with its dq; every tile of scores is then computed twice, with 7 matmuls in all. Where
 * query heads share keys, one item processes these heads one after another and sums dk and dv over
 * them. Each sum has the same order in both cases, so the results are the same bit for bit. */
#include "backend/cpu/vector/attention_rows.h"
#include "base/rng.h"
#include "base/threads.h"

#include <omp.h>

/* One thread's memory. */
struct work {
    float lse[TILE], delta[TILE]; /* of each query; lse is multiplied by log2(e) */
    float p[TILE * TILE];         /* scores, then probabilities after dropout: [key][query] */
    float ds[TILE * TILE];        /* dp, then ds */
    struct tile_mask mask;
    float *q_transposed, *dy_transposed;  /* [D][TILE] */
    float *q, *dy, *dq, *k_copy, *v_copy; /* [TILE][width] */
    float *dk, *dv;                       /* [tiles * TILE][width] */
};

struct call {
    struct heads s;
    const act *dy, *qkv, *y;
    const float *lse;
    act *dqkv;
    uint32_t step;
};

/* The work of one item: ranges of tiles of queries and of keys, and `heads` query heads from bh on.
 * If `keys` is set, the item computes dk and dv, and the heads are all query heads that share the
 * keys. If `queries` is set, the item computes dq. */
struct item {
    int64_t bh, heads, q_first, q_last, k_first, k_last;
    bool keys, queries;
};

static int64_t struct_bytes(void)
{
    return round_up((int64_t)sizeof(struct work), 64);
}

static int64_t work_bytes(const struct heads *s)
{
    return struct_bytes() + (7 + 2 * tiles_of(s)) * TILE * width_of(s) * (int64_t)sizeof(float);
}

static struct work *work_at(void *scratch, const struct heads *s, int thread)
{
    char *at = (char *)scratch + thread * work_bytes(s);
    struct work *w = (struct work *)at;
    float *next = (float *)(at + struct_bytes());
    float **tiles[] = {&w->q_transposed, &w->dy_transposed, &w->q,      &w->dy,
                       &w->dq,           &w->k_copy,        &w->v_copy, &w->dk};
    for (int i = 0; i < COUNT_OF(tiles); i++, next += TILE * width_of(s)) *tiles[i] = next;
    w->dv = w->dk + tiles_of(s) * TILE * width_of(s);
    return w;
}

static void load_queries(const struct call *c, struct work *w, int64_t bh, int64_t q0)
{
    const struct heads *s = &c->s;
    struct tile_source q = ACT(heads_part)(s, c->qkv, 0, bh, q0);
    struct tile_source dy = ACT(heads_rows)(s, c->dy, bh, q0);
    struct tile_source y = ACT(heads_rows)(s, c->y, bh, q0);
    float keep = s->drop.threshold ? dropout_scale(s->drop.threshold) : 1.0f;
    ACT(tile_transpose)(w->q_transposed, &q, s->scale * LOG2_E);
    ACT(tile_transpose)(w->dy_transposed, &dy, keep);
    ACT(tile_copy)(w->q, &q, s->scale);
    ACT(tile_copy)(w->dy, &dy, keep);
    for (int i = 0; i < TILE; i++) w->lse[i] = w->delta[i] = 0;
    for (int64_t i = 0; i < q.rows; i++) {
        const act *a = dy.at + i * dy.stride, *b = y.at + i * y.stride;
        vf sum = {0};
        for (int64_t d = 0; d < s->D; d += W)
            sum += load_act(a + d, s->D - d) * load_act(b + d, s->D - d);
        w->delta[i] = vf_sum(sum);
        w->lse[i] = c->lse[bh * s->T + q0 + i] * LOG2_E;
    }
}

/* For one vector of queries: scores become p after dropout, and dp becomes ds. */
INLINE void score_gradients(struct work *w, int64_t keys, int64_t q, bool diagonal, int threshold)
{
    float *p = w->p + q, *ds = w->ds + q;
    int64_t seen = diagonal ? min_i64(keys, q + W) : keys;
    vf lse = vf_load(w->lse + q), delta = vf_load(w->delta + q);
    for (int64_t k = 0; k < seen; k++) {
        vf e = tile_exp2(vf_load(p + k * TILE) - lse), dp = vf_load(ds + k * TILE);
        if (diagonal && k > q) e = vf_select((vi){VEC_LANES} < (int32_t)(k - q), (vf){0}, e);
        vf dropped = e;
        if (threshold) {
            vi kept = tile_keep(&w->mask, k, q, threshold);
            dropped = (vf)((vi)e & kept);
            dp = (vf)((vi)dp & kept);
        }
        vf_store(p + k * TILE, dropped);
        vf_store(ds + k * TILE, e * (dp - delta));
    }
}

static void one_tile(const struct call *c, struct work *w, const struct item *item, int64_t bh,
                     int64_t q_tile, int64_t k_tile)
{
    const struct heads *s = &c->s;
    int64_t q0 = q_tile * TILE, k0 = k_tile * TILE, width = width_of(s);
    int64_t q_rows = min_i64(TILE, s->T - q0), at = (k_tile - item->k_first) * TILE * width;
    bool diagonal = s->causal && q_tile == k_tile;
    struct tile_source k = ACT(heads_part)(s, c->qkv, 1, bh, k0);
    struct tile_source v = ACT(heads_part)(s, c->qkv, 2, bh, k0);
    struct tile_rows k_rows = ACT(tile_rows)(&k, w->k_copy);
    struct tile_rows v_rows = ACT(tile_rows)(&v, w->v_copy);
    struct tile_matmul scores = {.rows = k.rows, .vectors = ceil_div(q_rows, W), .depth = s->D};
    scores.a = k_rows.at, scores.a_stride = k_rows.stride;
    scores.b = w->q_transposed, scores.b_stride = TILE;
    scores.c = w->p, scores.c_stride = TILE;
    scores.skip = diagonal ? SKIP_COLUMNS : SKIP_NONE;
    VEC(tile_matmul)(&scores);
    scores.a = v_rows.at, scores.a_stride = v_rows.stride, scores.b = w->dy_transposed,
    scores.c = w->ds;
    VEC(tile_matmul)(&scores);
    if (s->drop.threshold) VEC(tile_mask)(&w->mask, &s->drop, c->step, bh, q0, k0, diagonal);
    for (int64_t q = 0; q < q_rows; q += W)
        score_gradients(w, k.rows, q, diagonal, s->drop.threshold);

    if (item->keys) {
        struct tile_matmul sum = {.rows = k.rows, .vectors = width / W, .depth = q_rows};
        sum.a = w->p, sum.a_stride = TILE;
        sum.b = w->dy, sum.b_stride = width;
        sum.c = w->dv + at, sum.c_stride = width;
        sum.add = bh > item->bh || q_tile > (s->causal ? k_tile : 0);
        sum.skip = diagonal ? SKIP_BEFORE : SKIP_NONE;
        VEC(tile_matmul)(&sum);
        sum.a = w->ds, sum.b = w->q, sum.c = w->dk + at;
        VEC(tile_matmul)(&sum);
    }
    if (item->queries) {
        struct tile_matmul sum = {.rows = q_rows, .vectors = width / W, .depth = k.rows};
        sum.a = w->ds, sum.a_stride = TILE, sum.across = true;
        sum.b = k_rows.at, sum.b_stride = k_rows.stride;
        sum.c = w->dq, sum.c_stride = width;
        sum.add = k_tile > 0, sum.skip = diagonal ? SKIP_AFTER : SKIP_NONE;
        VEC(tile_matmul)(&sum);
    }
}

static void run_head(const struct call *c, struct work *w, const struct item *item, int64_t bh)
{
    const struct heads *s = &c->s;
    for (int64_t q = max_i64(item->q_first, s->causal ? item->k_first : 0); q < item->q_last; q++) {
        load_queries(c, w, bh, q * TILE);
        int64_t k_last = s->causal ? min_i64(item->k_last, q + 1) : item->k_last;
        for (int64_t k = item->k_first; k < k_last; k++) one_tile(c, w, item, bh, q, k);
        if (!item->queries) continue;
        float factor[TILE];
        for (int i = 0; i < TILE; i++) factor[i] = s->scale;
        struct tile_source to = ACT(heads_part)(s, c->dqkv, 0, bh, q * TILE);
        ACT(tile_write)(c->dqkv + (to.at - c->dqkv), &to, w->dq, factor);
    }
}

static void run_item(const struct call *c, struct work *w, const struct item *item)
{
    const struct heads *s = &c->s;
    struct tile_source to;
    for (int64_t i = 0; i < item->heads; i++) run_head(c, w, item, item->bh + i);
    for (int64_t k = item->k_first; item->keys && k < item->k_last; k++) {
        int64_t at = (k - item->k_first) * TILE * width_of(s);
        to = ACT(heads_part)(s, c->dqkv, 1, item->bh, k * TILE);
        ACT(tile_write)(c->dqkv + (to.at - c->dqkv), &to, w->dk + at, NULL);
        to = ACT(heads_part)(s, c->dqkv, 2, item->bh, k * TILE);
        ACT(tile_write)(c->dqkv + (to.at - c->dqkv), &to, w->dv + at, NULL);
    }
}

/* Item i if several threads share a head. The items with the most work come first; under a
 * causal mask these are the first tile of keys and the last tile of queries. */
static struct item shared_item(const struct heads *s, int64_t i)
{
    int64_t groups = s->B * s->KV, items = groups + s->B * s->H, tiles = tiles_of(s);
    int64_t tile = i / items, at = i % items, back = tiles - 1 - tile;
    if (at < groups)
        return (struct item){at * s->group, s->group, 0, tiles, tile, tile + 1, true, false};
    return (struct item){at - groups, 1, back, back + 1, 0, tiles, false, true};
}

static enum status run_attention_grad(const struct kernel_call *k)
{
    struct call c = {.s = heads_of(&k->in_type[1], k->attr), .dy = k->in[0], .qkv = k->in[1]};
    c.y = k->in[2], c.lse = k->in[3], c.dqkv = k->out[0];
    c.step = (uint32_t) * (const int32_t *)k->in[4];
    int64_t groups = c.s.B * c.s.KV, tiles = tiles_of(&c.s), group = c.s.group;
    bool whole = tiles == 1 || attention_whole_groups(groups, attention_threads(k));
    int64_t items = whole ? groups : (groups + c.s.B * c.s.H) * tiles;
    attention_schedule(whole ? groups : 0, attention_threads(k));
#pragma omp parallel num_threads(attention_threads(k))
    {
        struct work *w = work_at(k->scratch, &c.s, omp_get_thread_num());
        int64_t begun = threads_begin();
#pragma omp for schedule(runtime) nowait
        for (int64_t i = 0; i < items; i++) {
            struct item item = {i * group, group, 0, tiles, 0, tiles, true, true};
            if (!whole) item = shared_item(&c.s, i);
            run_item(&c, w, &item);
        }
        threads_end(begun);
    }
    threads_joined();
    return ST_OK;
}

static int64_t scratch_bytes(const struct kernel *, const struct kernel_call *k)
{
    struct heads s = heads_of(&k->in_type[1], k->attr);
    return omp_get_max_threads() * work_bytes(&s);
}

const struct kernel ACT(attention_grad_rows)[] = {
    ROW(ATTENTION_GRAD, "aaafi", "a", run_attention_grad, .scratch_bytes = scratch_bytes,
        .prepare = attention_prepare),
    {.run = NULL},
};
