/* Sums and maxima. SUM_ROW sums up to RUN numbers in fp32 lanes and adds these sums in fp64;
 * SUM_LEADING sums in fp32, in parts. The parts do not depend on the number of threads, so the
 * result does not either. */
#include "backend/cpu/vector/act.h"

enum { RUN = 4096, STRIPE = 2048 };

INLINE float sum_run(const act *x, int64_t n)
{
    vf sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 * W <= n; i += 4 * W)
        for (int k = 0; k < 4; k++) sum[k] += load_full_act(x + i + k * W);
    for (; i < n; i += W) sum[0] += load_act(x + i, n - i);
    return vf_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static void sum_row_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]);
    for (int64_t row = first; row < last; row++) {
        const act *x = (const act *)c->in[0] + row * n;
        double sum = 0;
        for (int64_t i = 0; i < n; i += RUN) sum += (double)sum_run(x + i, min_i64(RUN, n - i));
        store_act((act *)c->out[0] + row, vf_all((float)sum), 1);
    }
}
RUN_ROWS(sum_row, 1)

static void max_row_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]);
    for (int64_t row = first; row < last; row++) {
        const act *x = (const act *)c->in[0] + row * n;
        vf max = vf_all(act_at(x, 0));
        vi nan = {0}; /* set in lanes that had a NaN, because vf_max may drop NaNs */
        int64_t i = 0;
        for (; i + W <= n; i += W) {
            vf a = load_full_act(x + i);
            max = vf_max(max, a);
            nan |= a != a;
        }
        float row_max = vf_max_lane(max);
        for (; i < n; i++) {
            float a = act_at(x, i);
            row_max = a > row_max || a != a ? a : row_max;
        }
        bool any_nan = vf_sum(__builtin_convertvector(nan, vf)) != 0.0f;
        store_act((act *)c->out[0] + row, vf_all(any_nan ? NAN : row_max), 1);
    }
}
RUN_ROWS(max_row, 1)

/* --- sums over the leading dimensions: x (rows, n) to (n) --- */

/* A work item is one part of the rows and one stripe of at most STRIPE columns. */
struct leading {
    int64_t rows, n, parts, stripes;
};

INLINE struct leading leading_of(const struct kernel_call *c)
{
    int64_t n = type_elements(&c->out_type[0]), rows = type_elements(&c->in_type[0]) / n;
    return (struct leading){rows, n, part_count(rows, 32), ceil_div(n, STRIPE)};
}

static int64_t sum_leading_scratch(const struct kernel *, const struct kernel_call *c)
{
    struct leading s = leading_of(c);
    return s.parts * s.n * (int64_t)sizeof(float);
}

/* Adds `rows` rows of n columns, `stride` apart, to sum; loads and stores sum only once. */
INLINE void add_rows(const act *x, int64_t stride, float *sum, int64_t n, const int rows)
{
    for (int64_t i = 0; i < n; i += W) {
        vf a = load(sum + i, n - i);
        for (int r = 0; r < rows; r++) a += load_act(x + r * stride + i, n - i);
        store(sum + i, a, n - i);
    }
}

static void sum_leading_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const struct leading s = leading_of(c);
    for (int64_t item = first; item < last; item++) {
        int64_t part = item / s.stripes, left = item % s.stripes * STRIPE;
        int64_t n = min_i64(STRIPE, s.n - left);
        float *sum = (float *)(s.parts == 1 ? c->out[0] : c->scratch) + part * s.n + left;
        const act *x = (const act *)c->in[0] + left;
        int64_t row = part_begin(s.rows, s.parts, part),
                end = part_begin(s.rows, s.parts, part + 1);
        memset(sum, 0, (size_t)n * sizeof *sum);
        for (; row + 4 <= end; row += 4) add_rows(x + row * s.n, s.n, sum, n, 4);
        for (; row < end; row++) add_rows(x + row * s.n, s.n, sum, n, 1);
    }
}

static void sum_parts_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const struct leading s = leading_of(c);
    sum_parts(c->scratch, s.parts, s.n, c->out[0], first, last);
}

static enum status run_sum_leading(const struct kernel_call *c)
{
    const struct leading s = leading_of(c);
    int64_t items = s.parts * s.stripes;
    parallel_ranges(c, items, 1, s.rows * s.n / items, sum_leading_range);
    if (s.parts > 1) parallel_ranges(c, s.n, 64, s.parts, sum_parts_range);
    return ST_OK;
}

/* clang-format off */
const struct kernel ACT(reduce_rows)[] = {
    ROW(SUM_ROW, "a", "a", run_sum_row),
    ROW(MAX_ROW, "a", "a", run_max_row),
    ROW(SUM_LEADING, "a", "f", run_sum_leading, .scratch_bytes = sum_leading_scratch),
    {0},
};
/* clang-format on */
