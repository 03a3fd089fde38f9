/* move.h - the reference: split and merge of heads, split and concatenation of rows, rotary
 * embeddings, embedding tables, picked elements, constants. Included by ref_f32.c and ref_f64.c. */
#ifndef BACKEND_CPU_REF_MOVE_H
#define BACKEND_CPU_REF_MOVE_H

#include "backend/cpu/ref/ref.h"

static enum status run_fill(const struct kernel_call *c)
{
    real *out = c->out[0];
    for (int64_t i = 0; i < type_elements(&c->out_type[0]); i++)
        out[i] = (real)c->attr->constant.value;
    return ST_OK;
}

/* The offset, in the packed tensor (B,T,(H+(P-1)*KV)*D), of the row with index `row` of part p, a
 * tensor (B,H,T,D). Part 0 has H packed heads. Every other part has KV packed heads, and `group` of
 * its H heads share one of them. */
static int64_t packed_row(const struct type *heads, int64_t group, int64_t parts, int64_t p,
                          int64_t row)
{
    int64_t H = heads->dim[1], T = heads->dim[2], D = heads->dim[3];
    int64_t b = row / (H * T), h = row / T % H, t = row % T, KV = H / group;
    int64_t before = p ? H + (p - 1) * KV + h / group : h;
    return ((b * T + t) * (H + (parts - 1) * KV) + before) * D;
}

static int64_t group_of(const struct kernel_call *c, const struct type *heads)
{
    int64_t KV = c->attr->heads.kv_heads;
    return KV ? heads->dim[1] / KV : 1;
}

/* x (B,T,(H+(P-1)*KV)*D) -> P tensors (B,H,T,D) */
static enum status run_split_heads(const struct kernel_call *c)
{
    const struct type *heads = &c->out_type[0];
    int64_t D = type_columns(heads), group = group_of(c, heads);
    for (int p = 0; p < c->n_out; p++)
        for (int64_t row = 0; row < type_rows(heads); row++)
            memcpy((real *)c->out[p] + row * D,
                   (const real *)c->in[0] + packed_row(heads, group, c->n_out, p, row),
                   (size_t)D * sizeof(real));
    return ST_OK;
}

/* P tensors (B,H,T,D) -> (B,T,(H+(P-1)*KV)*D): heads that share a packed head are summed */
static enum status run_merge_heads(const struct kernel_call *c)
{
    const struct type *heads = &c->in_type[0];
    int64_t H = heads->dim[1], T = heads->dim[2], D = heads->dim[3], group = group_of(c, heads);
    for (int p = 0; p < c->n_in; p++) {
        int64_t summed = p ? group : 1;
        for (int64_t row = 0; row < type_rows(heads); row++) {
            if (row / T % H % summed) continue; /* was added to the first head of its group */
            const real *from = (const real *)c->in[p] + row * D;
            real *to = (real *)c->out[0] + packed_row(heads, group, c->n_in, p, row);
            for (int64_t d = 0; d < D; d++) {
                double sum = (double)from[d];
                for (int64_t i = 1; i < summed; i++) sum += (double)from[i * T * D + d];
                to[d] = (real)sum;
            }
        }
    }
    return ST_OK;
}

/* Copies `columns` elements of each row; the rows of `from` and of `to` may be longer. */
static void copy_columns(real *to, int64_t to_columns, const real *from, int64_t from_columns,
                         int64_t rows, int64_t columns)
{
    for (int64_t row = 0; row < rows; row++)
        memcpy(to + row * to_columns, from + row * from_columns, (size_t)columns * sizeof(real));
}

static enum status run_split(const struct kernel_call *c)
{
    const real *x = c->in[0];
    int64_t C = type_columns(&c->in_type[0]), rows = type_rows(&c->in_type[0]);
    for (int i = 0; i < c->n_out; i++) {
        int64_t columns = type_columns(&c->out_type[i]);
        copy_columns(c->out[i], columns, x, C, rows, columns);
        x += columns;
    }
    return ST_OK;
}

static enum status run_concat(const struct kernel_call *c)
{
    real *y = c->out[0];
    int64_t C = type_columns(&c->out_type[0]), rows = type_rows(&c->out_type[0]);
    for (int i = 0; i < c->n_in; i++) {
        int64_t columns = type_columns(&c->in_type[i]);
        copy_columns(y, C, c->in[i], columns, rows, columns);
        y += columns;
    }
    return ST_OK;
}

/* positions (T) -> (T,D): column i (even) is the cosine of position theta^(-i/D), i + 1 its sine */
static enum status run_rope_table(const struct kernel_call *c)
{
    const int32_t *position = c->in[0];
    real *table = c->out[0];
    int64_t T = c->out_type[0].dim[0], D = c->out_type[0].dim[1];
    for (int64_t t = 0; t < T; t++)
        for (int64_t i = 0; i < D; i += 2) {
            double angle = position[t] * pow(c->attr->rope.theta, -(double)i / (double)D);
            table[t * D + i] = (real)cos(angle);
            table[t * D + i + 1] = (real)sin(angle);
        }
    return ST_OK;
}

/* x (B,T,C), table (T,D) -> (B,T,C); y may be x */
static enum status run_rope(const struct kernel_call *c)
{
    const real *x = c->in[0], *table = c->in[1];
    real *y = c->out[0];
    int64_t T = c->in_type[1].dim[0], D = c->in_type[1].dim[1], C = type_columns(&c->in_type[0]);
    int64_t rotated = c->attr->rope.heads * D;
    double sign = c->attr->rope.back ? -1 : 1;
    for (int64_t row = 0; row < type_rows(&c->in_type[0]); row++, x += C, y += C) {
        for (int64_t i = 0; i < rotated; i += 2) {
            const real *cos_sin = table + row % T * D + i % D;
            double cosine = (double)cos_sin[0], sine = sign * (double)cos_sin[1];
            double even = (double)x[i], odd = (double)x[i + 1];
            y[i] = (real)(cosine * even - sine * odd);
            y[i + 1] = (real)(sine * even + cosine * odd);
        }
        for (int64_t i = rotated; i < C; i++) y[i] = x[i];
    }
    return ST_OK;
}

/* table (V,C), ids (...) -> (...,C) */
static enum status run_embed(const struct kernel_call *c)
{
    const real *table = c->in[0];
    const int32_t *ids = c->in[1];
    real *out = c->out[0];
    int64_t C = type_columns(&c->in_type[0]), n = type_elements(&c->in_type[1]);
    TRY(check_ids(ids, n, c->in_type[0].dim[0]));
    for (int64_t i = 0; i < n; i++)
        memcpy(out + i * C, table + ids[i] * C, (size_t)C * sizeof(real));
    return ST_OK;
}

static int64_t scratch_embed_grad(const struct kernel *, const struct kernel_call *c)
{
    return (c->out_type[0].dim[0] + type_elements(&c->in_type[c->n_in - 2])) *
           (int64_t)sizeof(int32_t);
}

/* [addend (V,C),] ids (...), dy (...,C) -> (V,C): row v is [addend's row v plus] the sum of the
 * rows of dy whose id is v. If dy has more rows than there are ids, the ids repeat. For each id, a
 * list in the scratch holds its positions among the ids, lowest first. A row sums dy position by
 * position, at each with its repetitions, and is written once. */
static enum status run_embed_grad(const struct kernel_call *c)
{
    const bool has_addend = c->n_in == 3;
    const real *addend = has_addend ? c->in[0] : NULL;
    const int32_t *ids = c->in[has_addend];
    const real *dy = c->in[has_addend + 1];
    real *out = c->out[0];
    int64_t V = c->out_type[0].dim[0], C = type_columns(&c->out_type[0]);
    int64_t n = type_elements(&c->in_type[has_addend]),
            all = type_rows(&c->in_type[has_addend + 1]);
    int32_t *first = c->scratch, *next = first + V;
    TRY(check_ids(ids, n, V));
    for (int64_t v = 0; v < V; v++) first[v] = -1;
    for (int64_t i = n - 1; i >= 0; i--) {
        next[i] = first[ids[i]];
        first[ids[i]] = (int32_t)i;
    }
    for (int64_t v = 0; v < V; v++)
        for (int64_t j = 0; j < C; j++) {
            double sum = addend ? (double)addend[v * C + j] : 0;
            for (int32_t i = first[v]; i >= 0; i = next[i])
                for (int64_t row = i; row < all; row += n) sum += (double)dy[row * C + j];
            out[v * C + j] = (real)sum;
        }
    return ST_OK;
}

/* table tokens (V,C), ids (B,T), table positions (P,C), position_ids (T), step -> (B,T,C):
 * dropout(row of tokens + row of positions) */
static enum status run_embed_sum(const struct kernel_call *c)
{
    const real *tokens = c->in[0], *positions = c->in[2];
    const int32_t *ids = c->in[1], *position_ids = c->in[3], *step = c->in[4];
    real *out = c->out[0];
    int64_t C = type_columns(&c->in_type[0]), T = type_elements(&c->in_type[3]);
    int64_t n = type_elements(&c->in_type[1]);
    TRY(check_ids(ids, n, c->in_type[0].dim[0]));
    TRY(check_ids(position_ids, T, c->in_type[2].dim[0]));
    for (int64_t row = 0; row < n; row++)
        for (int64_t i = 0; i < C; i++) {
            double sum =
                (double)tokens[ids[row] * C + i] + (double)positions[position_ids[row % T] * C + i];
            out[row * C + i] =
                (real)(sum * keep_element(&c->attr->drop, step, &c->out_type[0], row * C + i));
        }
    return ST_OK;
}

/* x (...,V), ids (...) -> (...,1) */
static enum status run_pick(const struct kernel_call *c)
{
    const real *x = c->in[0];
    const int32_t *ids = c->in[1];
    real *out = c->out[0];
    int64_t V = type_columns(&c->in_type[0]), n = type_elements(&c->in_type[1]);
    TRY(check_ids(ids, n, V));
    for (int64_t row = 0; row < n; row++) out[row] = x[row * V + ids[row]];
    return ST_OK;
}

/* ids (...), dy (...,1) -> (...,V): dy at the id, 0 elsewhere */
static enum status run_pick_grad(const struct kernel_call *c)
{
    const int32_t *ids = c->in[0];
    const real *dy = c->in[1];
    real *out = c->out[0];
    int64_t V = type_columns(&c->out_type[0]), n = type_elements(&c->in_type[0]);
    TRY(check_ids(ids, n, V));
    for (int64_t row = 0; row < n; row++)
        for (int64_t v = 0; v < V; v++) out[row * V + v] = v == ids[row] ? dy[row] : 0;
    return ST_OK;
}

const struct kernel REF(ref_move)[] = {
    ROW(FILL, run_fill),
    ROW(SPLIT_HEADS, run_split_heads),
    ROW(MERGE_HEADS, run_merge_heads),
    ROW(SPLIT, run_split),
    ROW(CONCAT, run_concat),
    ROW_TYPES(ROPE_TABLE, "i", "a", run_rope_table),
    ROW(ROPE, run_rope),
    ROW_TYPES(EMBED, "ai", "a", run_embed),
    ROW_TYPES(EMBED_GRAD, "ia", "a", run_embed_grad, .scratch_bytes = scratch_embed_grad),
    ROW_TYPES(EMBED_GRAD_ADD, "aia", "a", run_embed_grad, .scratch_bytes = scratch_embed_grad),
    ROW_TYPES(EMBED_GRAD_SUM, "ia", "a", run_embed_grad, .scratch_bytes = scratch_embed_grad),
    ROW_TYPES(EMBED_SUM, "aiaii", "a", run_embed_sum),
    ROW_TYPES(PICK, "ai", "a", run_pick),
    ROW_TYPES(PICK_GRAD, "ia", "a", run_pick_grad),
    {.run = NULL},
};

#endif
