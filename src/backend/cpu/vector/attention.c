/* Flash attention, forward: the matrix of scores is never stored.
 *
 * For each tile of queries, the kernel goes through the tiles of keys and updates the maximum and
 * the sum of exponentials of each query. Sums that used an old maximum are rescaled (Milakov and
 * Gimelshein, arXiv 1805.02867; Dao, arXiv 2307.08691). Exponentials have base 2; log2(e) is folded
 * into q. */
#include "backend/cpu/vector/attention_rows.h"
#include "base/rng.h"
#include "base/threads.h"

#include <omp.h>

/* One thread's memory. */
struct work {
    float max[TILE], sum[TILE], factor[TILE]; /* of each query */
    float p[TILE * TILE];                     /* scores, then probabilities: [key][query] */
    struct tile_mask mask;
    float *q;     /* transposed: [D][TILE] */
    float *y;     /* [TILE][width] */
    float *k, *v; /* copies of rows, if tile_rows needs them */
};

struct call {
    struct heads s;
    const act *qkv;
    act *y;
    float *lse;
    uint32_t step;
};

static int64_t work_bytes(const struct heads *s)
{
    int64_t struct_bytes = round_up((int64_t)sizeof(struct work), 64);
    return struct_bytes + 4 * TILE * width_of(s) * (int64_t)sizeof(float);
}

static struct work *work_at(void *scratch, const struct heads *s, int thread)
{
    char *at = (char *)scratch + thread * work_bytes(s);
    struct work *w = (struct work *)at;
    w->q = (float *)(at + round_up((int64_t)sizeof(struct work), 64));
    w->y = w->q + TILE * width_of(s);
    w->v = w->y + TILE * width_of(s);
    w->k = w->v + TILE * width_of(s);
    return w;
}

/* For a vector of queries: updates max and sum, and replaces the scores of `keys` keys by
 * exp2(score - max), or by 0 where dropout drops them. */
INLINE void probabilities(struct work *w, int64_t keys, int64_t q, bool diagonal, int threshold)
{
    float *p = w->p + q;
    int64_t open = diagonal ? min_i64(keys, q + W) : keys; /* the remaining keys are masked */
    vf old = vf_load(w->max + q), max = old, other = old;
    if (diagonal)
        for (int64_t k = q; k < open; k++) {
            vi masked = (vi){VEC_LANES} < (int32_t)(k - q);
            vf_store(p + k * TILE, vf_select(masked, vf_all(-INFINITY), vf_load(p + k * TILE)));
        }
    int64_t k = 0;
    for (; k + 2 <= open; k += 2) {
        max = vf_max(max, vf_load(p + k * TILE));
        other = vf_max(other, vf_load(p + (k + 1) * TILE));
    }
    if (k < open) max = vf_max(max, vf_load(p + k * TILE));
    max = vf_max(max, other);

    vf sum = {0};
    if (threshold) {
        for (k = 0; k < open; k++) {
            vf e = tile_exp2(vf_load(p + k * TILE) - max);
            sum += e;
            vi kept = tile_keep(&w->mask, k, q, threshold);
            vf_store(p + k * TILE, (vf)((vi)e & kept));
        }
    } else {
        for (k = 0; k < open; k++) {
            vf e = tile_exp2(vf_load(p + k * TILE) - max);
            sum += e;
            vf_store(p + k * TILE, e);
        }
    }
    vf factor = tile_exp2(old - max);
    vf_store(w->max + q, max);
    vf_store(w->factor + q, factor);
    vf_store(w->sum + q, vf_load(w->sum + q) * factor + sum);
}

static void one_tile(const struct call *c, struct work *w, int64_t bh, int64_t q0)
{
    const struct heads *s = &c->s;
    struct tile_source q = ACT(heads_part)(s, c->qkv, 0, bh, q0);
    int64_t vectors = ceil_div(q.rows, W), width = width_of(s),
            end = s->causal ? q0 + q.rows : s->T;
    ACT(tile_transpose)(w->q, &q, s->scale * LOG2_E);
    for (int i = 0; i < TILE; i++) w->max[i] = -1e30f, w->sum[i] = 0;

    for (int64_t k0 = 0; k0 < end; k0 += TILE) {
        bool diagonal = s->causal && k0 == q0;
        struct tile_source k = ACT(heads_part)(s, c->qkv, 1, bh, k0);
        struct tile_source v = ACT(heads_part)(s, c->qkv, 2, bh, k0);
        struct tile_rows k_rows = ACT(tile_rows)(&k, w->k);
        struct tile_matmul scores = {.rows = k.rows, .vectors = vectors, .depth = s->D};
        scores.a = k_rows.at, scores.a_stride = k_rows.stride;
        scores.b = w->q, scores.b_stride = TILE;
        scores.c = w->p, scores.c_stride = TILE;
        scores.skip = diagonal ? SKIP_COLUMNS : SKIP_NONE;
        VEC(tile_matmul)(&scores);
        if (s->drop.threshold) VEC(tile_mask)(&w->mask, &s->drop, c->step, bh, q0, k0, diagonal);
        for (int64_t i = 0; i < vectors; i++)
            probabilities(w, k.rows, i * W, diagonal, s->drop.threshold);
        struct tile_rows v_rows = ACT(tile_rows)(&v, w->v);
        struct tile_matmul weighted = {.rows = q.rows, .vectors = width / W, .depth = k.rows};
        weighted.a = w->p, weighted.a_stride = TILE, weighted.across = true;
        weighted.b = v_rows.at, weighted.b_stride = v_rows.stride;
        weighted.c = w->y, weighted.c_stride = width;
        weighted.add = k0 > 0;
        weighted.factor = w->factor, weighted.skip = diagonal ? SKIP_AFTER : SKIP_NONE;
        VEC(tile_matmul)(&weighted);
    }

    /* Dropout's scale is applied here, once. */
    float keep = s->drop.threshold ? dropout_scale(s->drop.threshold) : 1.0f;
    for (int64_t i = 0; i < vectors * W; i += W) {
        vf sum = vf_load(w->sum + i);
        vf_store(w->factor + i, keep / sum);
        vf_store(w->max + i, (vf_load(w->max + i) + vf_log(sum) * LOG2_E) * LN_2);
    }
    memcpy(c->lse + bh * s->T + q0, w->max, (size_t)q.rows * sizeof(float));
    struct tile_source to = ACT(heads_rows)(s, c->y, bh, q0);
    ACT(tile_write)(c->y + (to.at - c->y), &to, w->y, w->factor);
}

static enum status run_attention(const struct kernel_call *k)
{
    struct call c = {.s = heads_of(&k->in_type[0], k->attr), .qkv = k->in[0]};
    c.y = k->out[0], c.lse = k->out[1];
    c.step = (uint32_t) * (const int32_t *)k->in[1];
    int64_t tiles = tiles_of(&c.s), items = c.s.B * c.s.H * tiles;
    /* Items of one head follow one another, so that its keys stay in the cache. In each head the
     * longest items come first; under a causal mask these are the last queries. */
    attention_schedule(c.s.B * c.s.H, attention_threads(k));
#pragma omp parallel num_threads(attention_threads(k))
    {
        struct work *w = work_at(k->scratch, &c.s, omp_get_thread_num());
        int64_t begun = threads_begin();
#pragma omp for schedule(runtime) nowait
        for (int64_t i = 0; i < items; i++)
            one_tile(&c, w, i / tiles, (tiles - 1 - i % tiles) * TILE);
        threads_end(begun);
    }
    threads_joined();
    return ST_OK;
}

static int64_t scratch_bytes(const struct kernel *, const struct kernel_call *k)
{
    struct heads s = heads_of(&k->in_type[0], k->attr);
    return omp_get_max_threads() * work_bytes(&s);
}

const struct kernel ACT(attention_rows)[] = {
    ROW(ATTENTION, "ai", "af", run_attention, .scratch_bytes = scratch_bytes,
        .prepare = attention_prepare),
    {.run = NULL},
};
