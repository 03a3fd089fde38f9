/* Cross-entropy over rows of logits: lse = log sum exp(x) over the vocabulary, loss = lse -
 * x[target], gradient = softmax - one-hot(target). Columns from attr.loss.vocab on are padding. */
#include "backend/cpu/vector/act.h"

INLINE const act *logits_row(const struct kernel_call *c, int64_t row)
{
    return (const act *)c->in[0] + row * type_columns(&c->in_type[0]);
}

INLINE int64_t target_of(const struct kernel_call *c, int64_t row)
{
    int64_t id = ((const int32_t *)c->in[1])[row];
    BUG_IF(id < 0 || id >= c->attr->loss.vocab, "target %lld of %lld", (long long)id,
           (long long)c->attr->loss.vocab);
    return id;
}

/* Rows are processed ROWS at a time to hide the latency of the sums over lanes. */
enum { ROWS = 4 };

/* Softmax statistics of some rows: the largest logit, the sum of exp(x - max), and log-sum-exp. */
struct row_stats {
    float max[ROWS], sum[ROWS], lse[ROWS];
};

INLINE vf mask_padding(vf x, int64_t left, float padding)
{
    return left >= W ? x : vf_select(vf_lanes(left), x, vf_all(padding));
}

INLINE struct row_stats row_stats_of(const act *x, int64_t stride, int64_t n, const int rows)
{
    struct row_stats t = {.max = {0}};
    vf max[ROWS], sum[ROWS] = {0};
    for (int r = 0; r < rows; r++) max[r] = vf_all(-INFINITY);
    for (int64_t i = 0; i < n; i += W)
        for (int r = 0; r < rows; r++)
            max[r] =
                vf_max(max[r], mask_padding(load_act(x + r * stride + i, n - i), n - i, -INFINITY));
    for (int r = 0; r < rows; r++) t.max[r] = vf_max_lane(max[r]);
    for (int64_t i = 0; i < n; i += W)
        for (int r = 0; r < rows; r++) {
            vf e = vf_exp(load_act(x + r * stride + i, n - i) - t.max[r]);
            sum[r] += mask_padding(e, n - i, 0);
        }
    for (int r = 0; r < rows; r++) t.sum[r] = vf_sum(sum[r]);
    for (int r = 0; r < rows; r++) t.lse[r] = t.max[r] + logf(t.sum[r]);
    return t;
}

INLINE void lse_of(const struct kernel_call *c, int64_t row, const int rows)
{
    int64_t columns = type_columns(&c->in_type[0]);
    struct row_stats t = row_stats_of(logits_row(c, row), columns, c->attr->loss.vocab, rows);
    memcpy((float *)c->out[1] + row, t.lse, (size_t)rows * sizeof *t.lse);
}

static void cross_entropy_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t row = first;
    for (; row + ROWS <= last; row += ROWS) lse_of(c, row, ROWS);
    for (; row < last; row++) lse_of(c, row, 1);
}

static enum status run_cross_entropy(const struct kernel_call *c)
{
    TRY(VEC(over_rows)(c, 3, cross_entropy_range));
    int64_t rows = type_rows(&c->in_type[0]);
    double sum = 0;
    for (int64_t r = 0; r < rows; r++)
        sum += (double)((const float *)c->out[1])[r] -
               (double)act_at(logits_row(c, r), target_of(c, r));
    *(float *)c->out[0] = (float)(sum / (double)rows);
    return ST_OK;
}

/* dx (may be x) = p [- scale at the target], p = factor exp(x - shift); zeros in the padding. */
INLINE void grad_row(const struct kernel_call *c, int64_t row, float shift, float factor,
                     float scale)
{
    int64_t n = c->attr->loss.vocab, columns = type_columns(&c->in_type[0]);
    int64_t target = target_of(c, row);
    const act *x = logits_row(c, row);
    act *dx = (act *)c->out[0] + row * columns;
    vf at_target = vf_all(factor * expf(act_at(x, target) - shift) - scale);
    for (int64_t i = 0; i < n; i += W)
        store_act(dx + i, factor * vf_exp(load_act(x + i, n - i) - shift), n - i);
    store_act(dx + target, at_target, 1);
    if (n < columns) memset(dx + n, 0, (size_t)(columns - n) * sizeof *dx);
}

static void cross_entropy_grad_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    float scale = *(const float *)c->in[3] / (float)type_rows(&c->in_type[0]);
    const float *lse = c->in[2];
    for (int64_t r = first; r < last; r++) grad_row(c, r, lse[r], scale, scale);
}
RUN_ROWS(cross_entropy_grad, 3)

/* --- loss and gradient together; scratch holds the losses of the rows --- */

static int64_t both_scratch(const struct kernel *, const struct kernel_call *c)
{
    return type_rows(&c->in_type[0]) * (int64_t)sizeof(float);
}

INLINE void both_of(const struct kernel_call *c, int64_t row, float scale, const int rows)
{
    int64_t columns = type_columns(&c->in_type[0]);
    struct row_stats t = row_stats_of(logits_row(c, row), columns, c->attr->loss.vocab, rows);
    for (int r = 0; r < rows; r++) {
        float at_target = act_at(logits_row(c, row + r), target_of(c, row + r));
        ((float *)c->scratch)[row + r] = t.lse[r] - at_target;
        grad_row(c, row + r, t.max[r], scale / t.sum[r], scale);
    }
}

static void both_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    float scale = *(const float *)c->in[2] / (float)type_rows(&c->in_type[0]);
    int64_t row = first;
    for (; row + ROWS <= last; row += ROWS) both_of(c, row, scale, ROWS);
    for (; row < last; row++) both_of(c, row, scale, 1);
}

static enum status run_both(const struct kernel_call *c)
{
    TRY(VEC(over_rows)(c, 4, both_range));
    int64_t rows = type_rows(&c->in_type[0]);
    double sum = 0;
    for (int64_t r = 0; r < rows; r++) sum += (double)((const float *)c->scratch)[r];
    *(float *)c->out[1] = (float)(sum / (double)rows);
    return ST_OK;
}

const struct kernel ACT(loss_rows)[] = {
    ROW(CROSS_ENTROPY, "ai", "ff", run_cross_entropy),
    ROW(CROSS_ENTROPY_GRAD, "aiff", "a", run_cross_entropy_grad),
    ROW(CROSS_ENTROPY_BOTH, "aif", "af", run_both, .scratch_bytes = both_scratch),
    {0},
};
