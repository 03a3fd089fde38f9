/* Embedding tables and picks of one element from each row. */
#include "backend/cpu/vector/act.h"
#include "backend/cpu/vector/dropout.h"

INLINE int64_t id_at(const void *ids, int64_t i, int64_t n)
{
    int64_t id = ((const int32_t *)ids)[i];
    BUG_IF(id < 0 || id >= n, "id %lld is negative or not below %lld", (long long)id, (long long)n);
    return id;
}

/* An embedding table, in fp32 or in the type of activations. */
struct table {
    const void *at;
    int64_t rows, columns;
    bool is_f32;
};

INLINE struct table table_of(const struct kernel_call *c, int i)
{
    const struct type *t = &c->in_type[i];
    return (struct table){c->in[i], type_rows(t), type_columns(t), t->dtype == DT_F32};
}

INLINE vf load_table(const struct table *t, int64_t i, int64_t left)
{
    return t->is_f32 ? load((const float *)t->at + i, left)
                     : load_act((const act *)t->at + i, left);
}

static void embed_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const struct table t = table_of(c, 0);
    int64_t C = t.columns;
    for (int64_t r = first; r < last; r++) {
        int64_t row = id_at(c->in[1], r, t.rows) * C;
        act *y = (act *)c->out[0] + r * C;
        for (int64_t i = 0; i < C; i += W) store_act(y + i, load_table(&t, row + i, C - i), C - i);
    }
}

static enum status run_embed(const struct kernel_call *c)
{
    int64_t C = type_columns(&c->in_type[0]);
    parallel_ranges(c, type_elements(&c->in_type[1]), 1, C, embed_range);
    return ST_OK;
}

/* For each token of (B,T): the sum of a row of each table, then dropout by element of (B,T,C). */
static void embed_sum_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const struct table t = table_of(c, 0), p = table_of(c, 2);
    int64_t C = t.columns, T = type_elements(&c->in_type[3]);
    const struct dropout *d = &c->attr->drop;
    struct dropout_run run = VEC(dropout_begin)(d, step_of(c->in[4]));
    for (int64_t r = first; r < last; r++) {
        int64_t token = id_at(c->in[1], r, t.rows) * C;
        int64_t position = id_at(c->in[3], r % T, p.rows) * C;
        act *y = (act *)c->out[0] + r * C;
        for (int64_t at = 0, n = C, from = 0; at < C; at += n) {
            if (d->threshold > 0) n = VEC(dropout_seek)(&run, r * C + at, &from);
            n = min_i64(n, C - at);
            for (int64_t i = 0; i < n; i += W) {
                vf sum = load_table(&t, token + at + i, n - i) +
                         load_table(&p, position + at + i, n - i);
                if (d->threshold > 0) sum = dropout_times(&run, from + i, sum);
                store_act(y + at + i, sum, n - i);
            }
        }
    }
}

static enum status run_embed_sum(const struct kernel_call *c)
{
    int64_t C = type_columns(&c->in_type[0]);
    parallel_ranges(c, type_elements(&c->in_type[1]), 1, 2 * C, embed_sum_range);
    return ST_OK;
}

/* The output (V,C) starts as 0 or as a copy of the first input. Then each row of dy is added to the
 * row of its id. Each thread owns columns, so no two threads write the same element, and rows are
 * added in order. If dy has more rows than there are ids, the ids repeat. */
static void embed_grad_columns(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t C = type_columns(&c->out_type[0]), V = type_rows(&c->out_type[0]);
    const bool has_addend = c->n_in == 3;
    const void *ids = c->in[has_addend];
    int64_t rows = type_rows(&c->in_type[has_addend + 1]), n = last - first;
    int64_t count = type_elements(&c->in_type[has_addend]);
    const float *addend = has_addend ? (const float *)c->in[0] + first : NULL;
    float *table = (float *)c->out[0] + first;
    for (int64_t v = 0; v < V && addend != table; v++) {
        if (has_addend)
            memcpy(table + v * C, addend + v * C, (size_t)n * sizeof *table);
        else
            memset(table + v * C, 0, (size_t)n * sizeof *table);
    }
    for (int64_t r = 0; r < rows; r++) {
        const act *dy = (const act *)c->in[has_addend + 1] + r * C + first;
        float *sum = table + id_at(ids, r % count, V) * C;
        for (int64_t i = 0; i < n; i += W)
            store(sum + i, load(sum + i, n - i) + load_act(dy + i, n - i), n - i);
    }
}

static enum status run_embed_grad(const struct kernel_call *c)
{
    int64_t work = type_rows(&c->out_type[0]) + type_rows(&c->in_type[c->n_in - 1]);
    parallel_ranges(c, type_columns(&c->out_type[0]), 16, work, embed_grad_columns);
    return ST_OK;
}

/* PICK copies one element of each row. PICK_GRAD writes dy at that element and 0 elsewhere. */
static void pick_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t V = type_columns(&c->in_type[0]);
    for (int64_t r = first; r < last; r++)
        ((act *)c->out[0])[r] = ((const act *)c->in[0])[r * V + id_at(c->in[1], r, V)];
}

static enum status run_pick(const struct kernel_call *c)
{
    parallel_ranges(c, type_rows(&c->in_type[0]), 16, 4, pick_range);
    return ST_OK;
}

static void pick_grad_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t V = type_columns(&c->out_type[0]);
    for (int64_t r = first; r < last; r++) {
        act *y = (act *)c->out[0] + r * V;
        memset(y, 0, (size_t)V * sizeof *y);
        y[id_at(c->in[0], r, V)] = ((const act *)c->in[1])[r];
    }
}

static enum status run_pick_grad(const struct kernel_call *c)
{
    const struct type *y = &c->out_type[0];
    parallel_ranges(c, type_rows(y), 1, type_columns(y), pick_grad_range);
    return ST_OK;
}

static bool fits_embed(const struct kernel_call *c)
{
    return types_are(c, ACT_DTYPE, "fi", "a") || types_are(c, ACT_DTYPE, "ai", "a");
}
static bool fits_embed_sum(const struct kernel_call *c)
{
    return types_are(c, ACT_DTYPE, "fifii", "a") || types_are(c, ACT_DTYPE, "aiaii", "a");
}

const struct kernel ACT(embed_rows)[] = {
    {.op = OP_EMBED, .variant = ISA_NAME, .fits = fits_embed, .run = run_embed},
    {.op = OP_EMBED_SUM, .variant = ISA_NAME, .fits = fits_embed_sum, .run = run_embed_sum},
    ROW(EMBED_GRAD, "ia", "f", run_embed_grad),
    ROW(EMBED_GRAD_SUM, "ia", "f", run_embed_grad),
    ROW(EMBED_GRAD_ADD, "fia", "f", run_embed_grad),
    ROW(PICK, "ai", "a", run_pick),
    ROW(PICK_GRAD, "ia", "a", run_pick_grad),
    {0},
};
