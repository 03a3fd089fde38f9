/* Cross-entropy over rows of logits x. lse = log sum exp(x) over the vocabulary, and the loss is
 * the mean of lse - x[target] over the rows. The gradient of a row is softmax(x) - one-hot(target),
 * times the gradient of the loss, divided by the number of rows. Columns from attr.loss.vocab on
 * are padding. */
#include "backend/cpu/vector/act.h"

INLINE const act *logits_row(const struct kernel_call *c, int64_t row)
{
    return (const act *)c->in[0] + row * type_columns(&c->in_type[0]);
}

INLINE int64_t target_of(const struct kernel_call *c, int64_t row)
{
    int64_t id = ((const int32_t *)c->in[1])[row];
    BUG_IF(id < 0 || id >= c->attr->loss.vocab, "target %lld is negative or not below %lld",
           (long long)id, (long long)c->attr->loss.vocab);
    return id;
}

/* Rows are processed ROWS at a time to hide the latency of the sums over lanes. */
enum { ROWS = 4 };

/* Softmax statistics of up to ROWS rows: the largest logit (max); the sum of exp(x - max) over all
 * columns except the target's (others) and over all columns (sum); and the loss. Small values of
 * others and loss are accurate. */
struct row_stats {
    float max[ROWS], others[ROWS], sum[ROWS], loss[ROWS];
};

INLINE vf mask_padding(vf x, int64_t left, float padding)
{
    return left >= W ? x : vf_select(vf_lanes(left), x, vf_all(padding));
}

INLINE vf exp_at(const act *x, int64_t left, float max)
{
    return mask_padding(vf_exp(load_act(x, left) - max), left, 0);
}

INLINE struct row_stats row_stats_of(const struct kernel_call *c, int64_t row, const int rows)
{
    int64_t n = c->attr->loss.vocab, stride = type_columns(&c->in_type[0]), target[ROWS];
    const act *x = logits_row(c, row);
    struct row_stats t = {.max = {0}};
    vf max[ROWS], sum[ROWS] = {0};
    for (int r = 0; r < rows; r++) target[r] = target_of(c, row + r);
    for (int r = 0; r < rows; r++) max[r] = vf_all(-INFINITY);
    for (int64_t i = 0; i < n; i += W)
        for (int r = 0; r < rows; r++)
            max[r] =
                vf_max(max[r], mask_padding(load_act(x + r * stride + i, n - i), n - i, -INFINITY));
    for (int r = 0; r < rows; r++) t.max[r] = vf_max_lane(max[r]);
    for (int64_t i = 0, end; i < n; i += W) {
        end = n; /* the start of the next vector that contains a target */
        for (int r = 0; r < rows; r++)
            if (target[r] >= i && target[r] < end) end = target[r] & -W;
        for (; i < end; i += W)
            for (int r = 0; r < rows; r++) sum[r] += exp_at(x + r * stride + i, n - i, t.max[r]);
        if (i >= n) break;
        for (int r = 0; r < rows; r++) {
            vf e = exp_at(x + r * stride + i, n - i, t.max[r]);
            sum[r] += vf_select((vi){VEC_LANES} == (int32_t)(target[r] - i), vf_all(0), e);
        }
    }
    for (int r = 0; r < rows; r++) {
        float below = t.max[r] - act_at(x + r * stride, target[r]), own = expf(-below);
        t.others[r] = vf_sum(sum[r]);
        t.sum[r] = own + t.others[r];
        t.loss[r] = (t.sum[r] < 2 ? log1pf(own - 1 + t.others[r]) : logf(t.sum[r])) + below;
    }
    return t;
}

/* Scratch holds the losses of the rows. */
static int64_t losses_scratch(const struct kernel *, const struct kernel_call *c)
{
    return type_rows(&c->in_type[0]) * (int64_t)sizeof(float);
}

static void store_mean(const struct kernel_call *c, float *mean)
{
    int64_t rows = type_rows(&c->in_type[0]);
    double sum = 0;
    for (int64_t r = 0; r < rows; r++) sum += (double)((const float *)c->scratch)[r];
    *mean = (float)(sum / (double)rows);
}

INLINE void loss_of(const struct kernel_call *c, int64_t row, const int rows)
{
    struct row_stats t = row_stats_of(c, row, rows);
    memcpy((float *)c->scratch + row, t.loss, (size_t)rows * sizeof *t.loss);
    for (int r = 0; r < rows; r++) ((float *)c->out[1])[row + r] = t.max[r] + logf(t.sum[r]);
}

static void cross_entropy_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t row = first;
    for (; row + ROWS <= last; row += ROWS) loss_of(c, row, ROWS);
    for (; row < last; row++) loss_of(c, row, 1);
}

static enum status run_cross_entropy(const struct kernel_call *c)
{
    TRY(VEC(over_rows)(c, 3, cross_entropy_range));
    store_mean(c, c->out[0]);
    return ST_OK;
}

/* dx = factor exp(x - shift), except for `at_target` in the target's column and 0 in the padding.
 * dx may be x. */
INLINE void grad_row(const struct kernel_call *c, int64_t row, float shift, float factor,
                     float at_target)
{
    int64_t n = c->attr->loss.vocab, columns = type_columns(&c->in_type[0]);
    const act *x = logits_row(c, row);
    act *dx = (act *)c->out[0] + row * columns;
    for (int64_t i = 0; i < n; i += W)
        store_act(dx + i, factor * vf_exp(load_act(x + i, n - i) - shift), n - i);
    store_act(dx + target_of(c, row), vf_all(at_target), 1);
    if (n < columns) memset(dx + n, 0, (size_t)(columns - n) * sizeof *dx);
}

static void cross_entropy_grad_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    float scale = *(const float *)c->in[3] / (float)type_rows(&c->in_type[0]);
    const float *lse = c->in[2];
    for (int64_t r = first; r < last; r++) {
        float p = expf(act_at(logits_row(c, r), target_of(c, r)) - lse[r]);
        grad_row(c, r, lse[r], scale, scale * p - scale);
    }
}
RUN_ROWS(cross_entropy_grad, 3)

/* --- loss and gradient together --- */

INLINE void both_of(const struct kernel_call *c, int64_t row, float scale, const int rows)
{
    struct row_stats t = row_stats_of(c, row, rows);
    memcpy((float *)c->scratch + row, t.loss, (size_t)rows * sizeof *t.loss);
    for (int r = 0; r < rows; r++) {
        float factor = scale / t.sum[r];
        grad_row(c, row + r, t.max[r], factor, -factor * t.others[r]);
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
    store_mean(c, c->out[1]);
    return ST_OK;
}

const struct kernel ACT(loss_rows)[] = {
    ROW(CROSS_ENTROPY, "ai", "ff", run_cross_entropy, .scratch_bytes = losses_scratch),
    ROW(CROSS_ENTROPY_GRAD, "aiff", "a", run_cross_entropy_grad),
    ROW(CROSS_ENTROPY_BOTH, "aif", "af", run_both, .scratch_bytes = losses_scratch),
    {0},
};
