/* RMSNorm: y = x rrms w over rows of n, rrms = 1 / sqrt(mean(x^2) + eps).
 *
 * The gradient, with g = dy w, h = x rrms: dx = rrms (g - h mean(g h)), dw = sum of dy h over the
 * rows. The rows are summed in parts that depend only on the shape. */
#include "backend/cpu/vector/act.h"

/* Rows are processed ROWS at a time to hide the latency of the sums over lanes. Squares are summed
 * RUN columns at a time, because one fp32 sum over a long row would lose the last digits. */
enum { ROWS = 4, RUN = 32 * W };

/* Normalizes `rows` <= ROWS rows of n columns. */
INLINE void norm_rows(const act *x, const float *w, act *y, float *rrms, int64_t n, float eps,
                      const int rows)
{
    vf squares[ROWS] = {0};
    float scale[ROWS];
    for (int64_t from = 0; from < n; from += RUN) {
        vf sum[ROWS] = {0};
        for (int64_t i = from, end = min_i64(from + RUN, n); i < end; i += W)
            for (int r = 0; r < rows; r++) {
                vf a = load_act(x + r * n + i, n - i);
                sum[r] += a * a;
            }
        for (int r = 0; r < rows; r++) squares[r] += sum[r];
    }
    for (int r = 0; r < rows; r++) scale[r] = 1.0f / sqrtf(vf_sum(squares[r]) / (float)n + eps);
    for (int64_t i = 0; i < n; i += W) {
        vf wi = load(w + i, n - i);
        for (int r = 0; r < rows; r++)
            store_act(y + r * n + i, load_act(x + r * n + i, n - i) * scale[r] * wi, n - i);
    }
    memcpy(rrms, scale, (size_t)rows * sizeof *scale);
}

/* Normalizes the rows row ... last-1 of x and of the outputs. */
static void norm_all(const struct kernel_call *c, const act *x, const float *w, act *y, float *rrms,
                     int64_t row, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]);
    float eps = (float)c->attr->norm.eps;
    for (; row + ROWS <= last; row += ROWS)
        norm_rows(x + row * n, w, y + row * n, rrms + row, n, eps, ROWS);
    for (; row < last; row++) norm_rows(x + row * n, w, y + row * n, rrms + row, n, eps, 1);
}

static void rmsnorm_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    norm_all(c, c->in[0], c->in[1], c->out[0], c->out[1], first, last);
}
RUN_ROWS(rmsnorm, 2)

static void add_rmsnorm_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]);
    const act *a = c->in[0], *b = c->in[1];
    act *s = c->out[0];
    for (int64_t row = first, rows; row < last; row += rows) {
        rows = min_i64(ROWS, last - row);
        for (int64_t i = row * n, to = (row + rows) * n; i < to; i += W)
            store_act(s + i, load_act(a + i, to - i) + load_act(b + i, to - i), to - i);
        norm_all(c, s, c->in[2], c->out[1], c->out[2], row, row + rows); /* reads rounded s */
    }
}
RUN_ROWS(add_rmsnorm, 3)

/* --- gradients --- */

/* The inputs of RMSNORM_GRAD. RMSNORM_GRAD_ADD has one more, which comes first: `add`, a gradient
 * that is added to dx. */
struct grad_in {
    const act *add, *dy, *x;
    const float *w, *rrms;
};

INLINE struct grad_in grad_in(const struct kernel_call *c)
{
    int k = c->n_in - 4;
    return (struct grad_in){k ? c->in[0] : NULL, c->in[k], c->in[k + 1], c->in[k + 2],
                            c->in[k + 3]};
}

/* One row of n columns: dx = r g - x r^2 mean(g h) [+ add], r = rrms. Adds dy h to dw. */
INLINE void grad_row(const struct grad_in *in, int64_t row, int64_t n, act *dx, float *dw)
{
    const act *dy = in->dy + row * n, *x = in->x + row * n;
    const float *w = in->w, r = in->rrms[row];
    vf dots = {0};
    for (int64_t i = 0; i < n; i += W) {
        vf dh = load_act(dy + i, n - i) * r * load_act(x + i, n - i);
        dots += dh * load(w + i, n - i);
        store(dw + i, load(dw + i, n - i) + dh, n - i);
    }
    const float slope = r * r * vf_sum(dots) / (float)n;
    for (int64_t i = 0; i < n; i += W) {
        vf g = load_act(dy + i, n - i) * load(w + i, n - i);
        vf a = r * g - load_act(x + i, n - i) * slope;
        if (in->add) a += load_act(in->add + row * n + i, n - i);
        store_act(dx + row * n + i, a, n - i);
    }
}

enum { PART_ROWS = 16 }; /* for part_count */

static int64_t grad_scratch(const struct kernel *, const struct kernel_call *c)
{
    const struct type *x = &c->in_type[0];
    return part_count(type_rows(x), PART_ROWS) * type_columns(x) * (int64_t)sizeof(float);
}

static void grad_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]), rows = type_rows(&c->in_type[0]);
    int64_t parts = part_count(rows, PART_ROWS);
    const struct grad_in in = grad_in(c);
    for (int64_t k = first; k < last; k++) {
        float *dw = (float *)c->scratch + k * n;
        memset(dw, 0, (size_t)n * sizeof *dw);
        int64_t row = part_begin(rows, parts, k), end = part_begin(rows, parts, k + 1);
        for (; row < end; row++) grad_row(&in, row, n, c->out[0], dw);
    }
}

static void sum_parts_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]);
    int64_t parts = part_count(type_rows(&c->in_type[0]), PART_ROWS);
    sum_parts(c->scratch, parts, n, c->out[1], first, last);
}

static enum status run_grad(const struct kernel_call *c)
{
    int64_t n = type_columns(&c->in_type[0]), rows = type_rows(&c->in_type[0]);
    int64_t parts = part_count(rows, PART_ROWS);
    parallel_ranges(c, parts, 1, 6 * n * (rows / parts), grad_range);
    parallel_ranges(c, n, 64, parts, sum_parts_range);
    return ST_OK;
}

const struct kernel ACT(rms_rows)[] = {
    ROW(RMSNORM, "af", "af", run_rmsnorm),
    ROW(ADD_RMSNORM, "aaf", "aaf", run_add_rmsnorm),
    ROW(RMSNORM_GRAD, "aaff", "af", run_grad, .scratch_bytes = grad_scratch),
    ROW(RMSNORM_GRAD_ADD, "aaaff", "af", run_grad, .scratch_bytes = grad_scratch),
    {0},
};
