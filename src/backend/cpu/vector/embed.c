/* Tables read and written by ids. */
#include "backend/cpu/vector/common.h"
#include "backend/cpu/vector/dropout.h"

INLINE int64_t id_at(const void *ids, int64_t i, int64_t n)
{
    int64_t id = ((const int32_t *)ids)[i];
    BUG_IF(id < 0 || id >= n, "id %lld of %lld", (long long)id, (long long)n);
    return id;
}

static void embed_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t C = type_columns(&c->in_type[0]), V = type_rows(&c->in_type[0]);
    for (int64_t i = first; i < last; i++) {
        const float *row = (const float *)c->in[0] + id_at(c->in[1], i, V) * C;
        memcpy((float *)c->out[0] + i * C, row, (size_t)C * sizeof *row);
    }
}

static enum status run_embed(const struct kernel_call *c)
{
    int64_t C = type_columns(&c->in_type[0]);
    parallel_ranges(c, type_elements(&c->in_type[1]), 1, C, embed_range);
    return ST_OK;
}

INLINE void embed_run(const float *a, const float *b, const float *factor, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i += W) {
        vf sum = take(a + i, n - i) + take(b + i, n - i);
        put(y + i, factor ? sum * take(factor + i, n - i) : sum, n - i);
    }
}

/* Tokens (B,T): a row of each table, added, then dropout by element of the (B,T,C) output. */
static void embed_sum_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t C = type_columns(&c->in_type[0]), T = type_elements(&c->in_type[3]);
    int64_t V = type_rows(&c->in_type[0]), positions = type_rows(&c->in_type[2]);
    const struct dropout *d = &c->attr->drop;
    struct dropout_run run = {.first = -1};
    for (int64_t i = first; i < last; i++) {
        const float *a = (const float *)c->in[0] + id_at(c->in[1], i, V) * C;
        const float *b = (const float *)c->in[2] + id_at(c->in[3], i % T, positions) * C;
        float *y = (float *)c->out[0] + i * C;
        if (d->threshold == 0) embed_run(a, b, NULL, y, C);
        for (int64_t at = 0, n; d->threshold > 0 && at < C; at += n) {
            const float *factor = VEC(dropout_at)(&run, d, step_of(c->in[4]), i * C + at, &n);
            embed_run(a + at, b + at, factor, y + at, at_most(n, C - at));
        }
    }
}

static enum status run_embed_sum(const struct kernel_call *c)
{
    int64_t C = type_columns(&c->in_type[0]);
    parallel_ranges(c, type_elements(&c->in_type[1]), 1, 2 * C, embed_sum_range);
    return ST_OK;
}

/* (V,C) = 0, then the rows of dy are added by id. A thread owns columns: no two write one place, and
 * the rows are added in their order. */
static void embed_grad_columns(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t C = type_columns(&c->out_type[0]), V = type_rows(&c->out_type[0]);
    int64_t rows = type_elements(&c->in_type[0]), n = last - first;
    float *table = (float *)c->out[0] + first;
    for (int64_t v = 0; v < V; v++) memset(table + v * C, 0, (size_t)n * sizeof *table);
    for (int64_t r = 0; r < rows; r++) {
        const float *dy = (const float *)c->in[1] + r * C + first;
        float *sum = table + id_at(c->in[0], r, V) * C;
        for (int64_t i = 0; i < n; i += W)
            put(sum + i, take(sum + i, n - i) + take(dy + i, n - i), n - i);
    }
}

static enum status run_embed_grad(const struct kernel_call *c)
{
    int64_t work = type_rows(&c->out_type[0]) + type_elements(&c->in_type[0]);
    parallel_ranges(c, type_columns(&c->out_type[0]), 16, work, embed_grad_columns);
    return ST_OK;
}

/* One number of each row, and its gradient: zeros but for that number. */
static void pick_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t V = type_columns(&c->in_type[0]);
    for (int64_t r = first; r < last; r++)
        ((float *)c->out[0])[r] = ((const float *)c->in[0])[r * V + id_at(c->in[1], r, V)];
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
        float *y = (float *)c->out[0] + r * V;
        memset(y, 0, (size_t)V * sizeof *y);
        y[id_at(c->in[0], r, V)] = ((const float *)c->in[1])[r];
    }
}

static enum status run_pick_grad(const struct kernel_call *c)
{
    const struct type *y = &c->out_type[0];
    parallel_ranges(c, type_rows(y), 1, type_columns(y), pick_grad_range);
    return ST_OK;
}

const struct kernel VEC(embed_rows)[] = {
    {.op = OP_EMBED, .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_embed},
    {.op = OP_EMBED_SUM, .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_embed_sum},
    {.op = OP_EMBED_GRAD, .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_embed_grad},
    {.op = OP_PICK, .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_pick},
    {.op = OP_PICK_GRAD, .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_pick_grad},
    {0},
};
