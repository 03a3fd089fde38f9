/* Sums and maxima. Partial sums are fp32 lanes over at most RUN numbers, then fp64; the parts are
 * fixed by the shape alone, so the number of threads does not show in the result. */
#include "backend/cpu/vector/common.h"

enum { RUN = 4096, STRIPE = 256 };

INLINE float sum_run(const float *x, int64_t n, bool squares)
{
    vf sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 * W <= n; i += 4 * W)
        for (int k = 0; k < 4; k++) {
            vf a = vf_load(x + i + k * W);
            sum[k] += squares ? a * a : a;
        }
    for (; i < n; i += W) {
        vf a = take(x + i, n - i);
        sum[0] += squares ? a * a : a;
    }
    return vf_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

INLINE double sum_of(const float *x, int64_t n, bool squares)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += RUN)
        sum += (double)sum_run(x + i, at_most(RUN, n - i), squares);
    return sum;
}

static void sum_row_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]);
    const float *x = c->in[0];
    float *y = c->out[0];
    for (int64_t row = first; row < last; row++) y[row] = (float)sum_of(x + row * n, n, false);
}

static enum status run_sum_row(const struct kernel_call *c)
{
    return VEC(over_rows)(c, 1, sum_row_range);
}

static void max_row_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]);
    for (int64_t row = first; row < last; row++) {
        const float *x = (const float *)c->in[0] + row * n;
        vf top = vf_all(x[0]);
        vi odd = {0}; /* no numbers, which vf_max forgets */
        int64_t i = 0;
        for (; i + W <= n; i += W) {
            vf a = vf_load(x + i);
            top = vf_max(top, a);
            odd |= a != a;
        }
        float most = vf_largest(top);
        for (; i < n; i++) most = x[i] > most || x[i] != x[i] ? x[i] : most;
        bool none = vf_sum(__builtin_convertvector(odd, vf)) != 0.0f;
        ((float *)c->out[0])[row] = none ? NAN : most;
    }
}

static enum status run_max_row(const struct kernel_call *c)
{
    return VEC(over_rows)(c, 1, max_row_range);
}

/* --- sums over the leading dimensions: x (rows, n) to (n) --- */

/* A work item is one part of the rows times one stripe of the columns. */
struct leading {
    int64_t rows, n, parts, stripes;
};

INLINE struct leading leading_of(const struct kernel_call *c)
{
    int64_t n = type_elements(&c->out_type[0]), rows = type_elements(&c->in_type[0]) / n;
    return (struct leading){rows, n, part_count(rows, 32), (n + STRIPE - 1) / STRIPE};
}

static int64_t sum_leading_scratch(const struct kernel_call *c)
{
    struct leading s = leading_of(c);
    return s.parts * s.n * (int64_t)sizeof(float);
}

static void sum_leading_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const struct leading s = leading_of(c);
    for (int64_t item = first; item < last; item++) {
        int64_t part = item / s.stripes, left = item % s.stripes * STRIPE;
        int64_t n = at_most(STRIPE, s.n - left);
        float *sum = (float *)(s.parts == 1 ? c->out[0] : c->scratch) + part * s.n + left;
        const float *x = (const float *)c->in[0] + left;
        int64_t row = part_begin(s.rows, s.parts, part),
                end = part_begin(s.rows, s.parts, part + 1);
        memcpy(sum, x + row * s.n, (size_t)n * sizeof *sum);
        for (row++; row < end; row++)
            for (int64_t i = 0; i < n; i += W)
                put(sum + i, take(sum + i, n - i) + take(x + row * s.n + i, n - i), n - i);
    }
}

static void join_parts_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const struct leading s = leading_of(c);
    const float *part = c->scratch;
    float *y = c->out[0];
    for (int64_t i = first; i < last; i += W) {
        vf sum = {0};
        for (int64_t k = 0; k < s.parts; k++) sum += take(part + k * s.n + i, last - i);
        put(y + i, sum, last - i);
    }
}

static enum status run_sum_leading(const struct kernel_call *c)
{
    const struct leading s = leading_of(c);
    int64_t items = s.parts * s.stripes;
    parallel_ranges(c, items, 1, s.rows * s.n / items, sum_leading_range);
    if (s.parts > 1) parallel_ranges(c, s.n, 64, s.parts, join_parts_range);
    return ST_OK;
}

/* --- the sum of squares of everything --- */

static int64_t sum_squares_scratch(const struct kernel_call *c)
{
    return part_count(type_elements(&c->in_type[0]), RUN) * (int64_t)sizeof(double);
}

static void sum_squares_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_elements(&c->in_type[0]), parts = part_count(n, RUN);
    for (int64_t k = first; k < last; k++) {
        int64_t begin = part_begin(n, parts, k), end = part_begin(n, parts, k + 1);
        ((double *)c->scratch)[k] = sum_of((const float *)c->in[0] + begin, end - begin, true);
    }
}

static enum status run_sum_squares(const struct kernel_call *c)
{
    int64_t n = type_elements(&c->in_type[0]), parts = part_count(n, RUN);
    parallel_ranges(c, parts, 1, n / parts, sum_squares_range);
    double sum = 0;
    for (int64_t k = 0; k < parts; k++) sum += ((const double *)c->scratch)[k];
    *(float *)c->out[0] = (float)sum;
    return ST_OK;
}

/* clang-format off */
const struct kernel VEC(reduce_rows)[] = {
    {.op = OP_SUM_ROW,     .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_sum_row},
    {.op = OP_MAX_ROW,     .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_max_row},
    {.op = OP_SUM_LEADING, .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_sum_leading,
     .scratch_bytes = sum_leading_scratch},
    {.op = OP_SUM_SQUARES, .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_sum_squares,
     .scratch_bytes = sum_squares_scratch},
    {0},
};
/* clang-format on */
