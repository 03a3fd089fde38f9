/* LayerNorm: y = (x - mean) rstd w + b over rows of n, rstd = 1 / sqrt(var + eps).
 *
 * The gradient, with h = (x - mean) rstd, g = dy w: dx = rstd (g - mean(g) - h mean(g h)), dw = sum
 * of dy h over the rows, db = sum of dy. The rows are summed in parts that depend only on the
 * shape, not on the number of threads. */
#include "backend/cpu/vector/act.h"
#include "backend/cpu/vector/dropout.h"

/* Rows are processed ROWS at a time to hide the latency of the sums over lanes. */
enum { ROWS = 4 };

/* Normalizes `rows` <= ROWS rows of n columns; b may be NULL. */
INLINE void norm_rows(const act *x, const float *w, const float *b, act *y, float *mean,
                      float *rstd, int64_t n, float eps, const int rows)
{
    vf sum[ROWS] = {0}, squares[ROWS] = {0};
    float m[ROWS], scale[ROWS];
    for (int64_t i = 0; i < n; i += W)
        for (int r = 0; r < rows; r++) sum[r] += load_act(x + r * n + i, n - i);
    for (int r = 0; r < rows; r++) m[r] = vf_sum(sum[r]) / (float)n;
    for (int64_t i = 0; i < n; i += W)
        for (int r = 0; r < rows; r++) {
            vf a = load_act(x + r * n + i, n - i) - m[r];
            if (n - i < W) a = vf_select(vf_lanes(n - i), a, (vf){0});
            squares[r] += a * a;
        }
    for (int r = 0; r < rows; r++) scale[r] = 1.0f / sqrtf(vf_sum(squares[r]) / (float)n + eps);
    for (int64_t i = 0; i < n; i += W) {
        vf wi = load(w + i, n - i), bi = b ? load(b + i, n - i) : (vf){0};
        for (int r = 0; r < rows; r++) {
            vf a = (load_act(x + r * n + i, n - i) - m[r]) * scale[r];
            store_act(y + r * n + i, b ? a * wi + bi : a * wi, n - i);
        }
    }
    memcpy(mean, m, (size_t)rows * sizeof *m);
    memcpy(rstd, scale, (size_t)rows * sizeof *scale);
}

struct norm_out {
    act *y;
    float *mean, *rstd;
};

/* Normalizes `rows` rows of x, from `row` on. */
static void norm_all(const struct kernel_call *c, const act *x, const float *w, const float *b,
                     const struct norm_out *out, int64_t row, int64_t rows)
{
    int64_t n = type_columns(&c->in_type[0]), last = row + rows;
    float eps = (float)c->attr->norm.eps, *mean = out->mean, *rstd = out->rstd;
    for (; row + ROWS <= last; row += ROWS)
        norm_rows(x + row * n, w, b, out->y + row * n, mean + row, rstd + row, n, eps, ROWS);
    for (; row < last; row++)
        norm_rows(x + row * n, w, b, out->y + row * n, mean + row, rstd + row, n, eps, 1);
}

static void layernorm_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const float *b = c->n_in > 2 ? c->in[2] : NULL;
    const struct norm_out out = {c->out[0], c->out[1], c->out[2]};
    norm_all(c, c->in[0], c->in[1], b, &out, first, last - first);
}
RUN_ROWS(layernorm, 3)

/* Computes n elements of s = a + dropout(b), or of s = a + b if `run` is NULL. `at` is the offset
 * of the first element in the run. */
INLINE void add_run(const act *a, const act *b, act *s, int64_t n, const struct dropout_run *run,
                    int64_t at)
{
    for (int64_t i = 0; i < n; i += W) {
        vf branch = load_act(b + i, n - i);
        if (run) branch = dropout_times(run, at + i, branch);
        store_act(s + i, load_act(a + i, n - i) + branch, n - i);
    }
}

static void add_layernorm_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]);
    const act *a = c->in[0], *branch = c->in[1];
    act *s = c->out[0];
    const float *b = c->n_in > 4 ? c->in[4] : NULL;
    const struct norm_out out = {c->out[1], c->out[2], c->out[3]};
    const struct dropout *d = &c->attr->norm.drop;
    struct dropout_run run = VEC(dropout_begin)(d, step_of(c->in[2]));
    for (int64_t row = first, rows; row < last; row += rows) {
        rows = min_i64(ROWS, last - row);
        int64_t from = row * n, to = (row + rows) * n;
        if (d->threshold == 0) add_run(a + from, branch + from, s + from, to - from, NULL, 0);
        for (int64_t i = from, count, at; d->threshold > 0 && i < to; i += count) {
            count = min_i64(VEC(dropout_seek)(&run, i, &at), to - i);
            add_run(a + i, branch + i, s + i, count, &run, at);
        }
        norm_all(c, s, c->in[3], b, &out, row, rows); /* reads the stored, rounded sums */
    }
}

static enum status run_add_layernorm(const struct kernel_call *c)
{
    return VEC(over_rows)(c, c->attr->norm.drop.threshold ? 6 : 4, add_layernorm_range);
}

/* --- gradients --- */

/* The inputs of LAYERNORM_GRAD. LAYERNORM_GRAD_ADD has one more, which comes first: `add`, a
 * gradient that is added to dx. */
struct grad_in {
    const act *add, *dy, *x;
    const float *w, *mean, *rstd;
};

INLINE struct grad_in grad_in(const struct kernel_call *c)
{
    int k = c->n_in - 5;
    return (struct grad_in){k ? c->in[0] : NULL, c->in[k],     c->in[k + 1],
                            c->in[k + 2],        c->in[k + 3], c->in[k + 4]};
}

/* One row of n columns. With t = x - mean, g = dy w: dx = rstd g - rstd mean(g) - t rstd^2 mean(g
 * h) [+ add]. Adds dy h to dw and, unless db is NULL, dy to db. */
INLINE void grad_row(const struct grad_in *in, int64_t row, int64_t n, act *dx, float *dw,
                     float *db)
{
    const act *dy = in->dy + row * n, *x = in->x + row * n;
    const float *w = in->w, m = in->mean[row], r = in->rstd[row];
    vf sum = {0}, dots = {0};
    for (int64_t i = 0; i < n; i += W) {
        vf d = load_act(dy + i, n - i), wi = load(w + i, n - i);
        vf dh = d * r * (load_act(x + i, n - i) - m);
        sum += d * wi;
        dots += dh * wi;
        store(dw + i, load(dw + i, n - i) + dh, n - i);
        if (db) store(db + i, load(db + i, n - i) + d, n - i);
    }
    const float shift = r * vf_sum(sum) / (float)n, slope = r * r * vf_sum(dots) / (float)n;
    for (int64_t i = 0; i < n; i += W) {
        vf t = load_act(x + i, n - i) - m, g = load_act(dy + i, n - i) * load(w + i, n - i);
        vf a = r * g - shift - t * slope;
        if (in->add) a += load_act(in->add + row * n + i, n - i);
        store_act(dx + row * n + i, a, n - i);
    }
}

enum { PART_ROWS = 16 }; /* for part_count */

static int64_t grad_scratch(const struct kernel *, const struct kernel_call *c)
{
    const struct type *x = &c->in_type[0];
    return part_count(type_rows(x), PART_ROWS) * 2 * type_columns(x) * (int64_t)sizeof(float);
}

static void grad_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]), rows = type_rows(&c->in_type[0]);
    int64_t parts = part_count(rows, PART_ROWS);
    const struct grad_in in = grad_in(c);
    for (int64_t k = first; k < last; k++) {
        float *dw = (float *)c->scratch + k * 2 * n, *db = c->attr->norm.bias ? dw + n : NULL;
        memset(dw, 0, (size_t)(2 * n) * sizeof *dw);
        int64_t row = part_begin(rows, parts, k), end = part_begin(rows, parts, k + 1);
        for (; row < end; row++) grad_row(&in, row, n, c->out[0], dw, db);
    }
}

static void sum_parts_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]);
    int64_t parts = part_count(type_rows(&c->in_type[0]), PART_ROWS);
    for (int i = 0; i < (c->attr->norm.bias ? 2 : 1); i++)
        sum_parts((const float *)c->scratch + i * n, parts, 2 * n, c->out[1 + i], first, last);
}

static enum status run_grad(const struct kernel_call *c)
{
    int64_t n = type_columns(&c->in_type[0]), rows = type_rows(&c->in_type[0]);
    int64_t parts = part_count(rows, PART_ROWS);
    parallel_ranges(c, parts, 1, 8 * n * (rows / parts), grad_range);
    parallel_ranges(c, n, 64, parts, sum_parts_range);
    return ST_OK;
}

const struct kernel ACT(norm_rows)[] = {
    ROW(LAYERNORM, "aff", "aff", run_layernorm),
    ROW(ADD_LAYERNORM, "aaiff", "aaff", run_add_layernorm),
    ROW(LAYERNORM_GRAD, "aafff", "aff", run_grad, .scratch_bytes = grad_scratch),
    ROW(LAYERNORM_GRAD_ADD, "aaafff", "aff", run_grad, .scratch_bytes = grad_scratch),
    {0},
};
