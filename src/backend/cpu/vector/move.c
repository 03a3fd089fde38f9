/* Split and merge of heads; split and concatenation of rows. */
#include "backend/cpu/vector/act.h"

INLINE void copy_run(const act *from, act *to, int64_t n)
{
    int64_t i = 0, whole = (int64_t)(sizeof(vf) / sizeof(act));
    for (; i + whole <= n; i += whole) memcpy(to + i, from + i, sizeof(vf));
    if (i < n) memcpy(to + i, from + i, (size_t)(n - i) * sizeof(act));
}

/* to = the sum of `terms` runs of n elements, `stride` apart, added in order. */
INLINE void sum_runs(const act *from, int64_t stride, int64_t terms, act *to, int64_t n)
{
    for (int64_t i = 0; i < n; i += W) {
        vf sum = load_act(from + i, n - i);
        for (int64_t k = 1; k < terms; k++) sum += load_act(from + k * stride + i, n - i);
        store_act(to + i, sum, n - i);
    }
}

/* Splits packed (B,T,(H+(P-1)*KV)*D) into P tensors (B,H,T,D), or merges P such tensors; a row is
 * one token. In parts 1 to P-1, H/KV heads share a packed head: a split copies the packed head to
 * each of them, a merge sums them. KV = 0 means H. */
INLINE void move_heads(const struct kernel_call *c, int64_t first, int64_t last, bool split)
{
    const struct type *packed = split ? &c->in_type[0] : &c->out_type[0];
    const struct type *single = split ? &c->out_type[0] : &c->in_type[0];
    int64_t T = packed->dim[1], H = single->dim[1], D = single->dim[3];
    int64_t P = split ? c->n_out : c->n_in, KV = c->attr->heads.kv_heads;
    for (int64_t row = first; row < last; row++) {
        act *token = (act *)(split ? c->in[0] : c->out[0]) + row * packed->dim[2];
        int64_t b = row / T, t = row % T;
        for (int64_t part = 0; part < P; part++) {
            int64_t group = part && KV ? H / KV : 1;
            for (int64_t h = 0; h < H; h += group, token += D) {
                act *head = (act *)(split ? c->out[part] : c->in[part]) + ((b * H + h) * T + t) * D;
                if (!split && group > 1) sum_runs(head, T * D, group, token, D);
                if (!split && group == 1) copy_run(head, token, D);
                for (int64_t i = 0; split && i < group; i++) copy_run(token, head + i * T * D, D);
            }
        }
    }
}

static void split_heads_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    move_heads(c, first, last, true);
}

static void merge_heads_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    move_heads(c, first, last, false);
}
RUN_ROWS(split_heads, 1)

static enum status run_merge_heads(const struct kernel_call *c)
{
    const struct type *packed = &c->out_type[0];
    parallel_ranges(c, type_rows(packed), 1, type_columns(packed), merge_heads_range);
    return ST_OK;
}

/* Splits each row of `all` into consecutive parts, or concatenates the parts. */
INLINE void move_parts(const struct kernel_call *c, int64_t first, int64_t last, bool split)
{
    int64_t C = type_columns(split ? &c->in_type[0] : &c->out_type[0]), at = 0;
    for (int i = 0; i < (split ? c->n_out : c->n_in); i++) {
        int64_t n = type_columns(split ? &c->out_type[i] : &c->in_type[i]);
        act *all = (act *)(split ? c->in[0] : c->out[0]) + at;
        act *part = split ? c->out[i] : c->in[i];
        for (int64_t row = first; row < last; row++) {
            const act *from = split ? all + row * C : part + row * n;
            act *to = split ? part + row * n : all + row * C;
            if (n == 1) *to = *from;
            if (n > 1) copy_run(from, to, n);
        }
        at += n;
    }
}

static void split_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    move_parts(c, first, last, true);
}

static void concat_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    move_parts(c, first, last, false);
}
RUN_ROWS(split, 1)

static enum status run_concat(const struct kernel_call *c)
{
    const struct type *all = &c->out_type[0];
    parallel_ranges(c, type_rows(all), 1, type_columns(all), concat_range);
    return ST_OK;
}

const struct kernel ACT(move_rows)[] = {
    ROW(SPLIT_HEADS, "aaaa", "aaaa", run_split_heads),
    ROW(MERGE_HEADS, "aaaa", "aaaa", run_merge_heads),
    ROW(SPLIT, "aaaa", "aaaa", run_split),
    ROW(CONCAT, "aaaa", "aaaa", run_concat),
    {0},
};
