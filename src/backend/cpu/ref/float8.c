/* The reference of the float8 operators, element by element; on the CPU they save no time. */
#include "backend/cpu/ref/float8.h"

#include "backend/cpu/cpu_kernels.h"
#include "backend/cpu/ref/cast.h"
#include "backend/cpu/ref/functions.h"
#include "backend/cpu/ref/ref.h"
#include "backend/cpu/runtime/parallel.h"

static bool is_f32_bf16_or_f64(enum dtype dtype)
{
    return dtype == DT_F32 || dtype == DT_BF16 || dtype == DT_F64;
}

static bool fits_quantize(const struct kernel_call *c)
{
    return is_f32_bf16_or_f64(c->in_type[0].dtype) && c->in_type[0].dtype != DT_BF16 &&
           is_f32_bf16_or_f64(c->in_type[1].dtype);
}

/* The exponent of the scale, from the amax ring without the slots of this step and the next. */
static int scale_exponent(const struct kernel_call *c, int64_t now)
{
    enum { MAX_EXPONENT = 100 }; /* keeps the scale and the scaled numbers within float range */
    int max_exponent = c->attr->quantize.to == DT_E4M3 ? 7 : 14;
    double largest = 0;
    for (int64_t i = 0; i < AMAX_STEPS; i++) {
        double amax = float_load(c->in_type[0].dtype, c->in[0], i);
        bool past = i != now && i != (now + 1) % AMAX_STEPS;
        if (past && isfinite(amax) && amax > largest) largest = amax;
    }
    int e = largest > 0 ? ilogb(largest) - max_exponent : -c->attr->quantize.first;
    return e < -MAX_EXPONENT ? -MAX_EXPONENT : e > MAX_EXPONENT ? MAX_EXPONENT : e;
}

typedef double (*element_fn)(const struct kernel_call *c, int64_t i);

/* Element i of the tensor that is quantized, for each operator. */
static double plain(const struct kernel_call *c, int64_t i)
{
    return float_load(c->in_type[1].dtype, c->in[1], i);
}
static double of_gelu(const struct kernel_call *c, int64_t i)
{
    return gelu(plain(c, i), c->attr->quantize.tanh);
}
static double of_gelu_grad(const struct kernel_call *c, int64_t i)
{
    double x = float_load(c->in_type[3].dtype, c->in[3], i);
    return plain(c, i) * gelu_derivative(x, c->attr->quantize.tanh);
}

static double amax_of(const struct kernel_call *c, element_fn element)
{
    double largest = 0;
    for (int64_t i = 0; i < type_elements(&c->in_type[1]); i++)
        largest = fmax(largest, fabs(element(c, i)));
    return largest;
}

/* Stores the codes and their transpose, or in double outputs (in checks) the decoded numbers. */
static void store_codes(const struct kernel_call *c, element_fn element)
{
    int64_t rows = type_rows(&c->in_type[1]), columns = type_columns(&c->in_type[1]);
    double scale = float_load(c->out_type[3].dtype, c->out[3], 0);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < columns; k++) {
            int64_t i = r * columns + k;
            double x = element(c, i) / scale;
            double code = float8_load(c->attr->quantize.to, float8_store(c->attr->quantize.to, x));
            float_store(c->out_type[1].dtype, c->out[1], i, code);
            float_store(c->out_type[2].dtype, c->out[2], k * rows + r, code);
        }
}

static enum status quantize(const struct kernel_call *c, element_fn element)
{
    int64_t now = (int64_t)(*(const uint32_t *)c->in[2] % AMAX_STEPS);
    enum dtype dtype = c->in_type[0].dtype;
    double scale = ldexp(1, scale_exponent(c, now));
    float_store(c->out_type[3].dtype, c->out[3], 0, scale);
    float_store(dtype, c->out[0], now, fmax(float_load(dtype, c->in[0], now), amax_of(c, element)));
    float_store(dtype, c->out[0], (now + 1) % AMAX_STEPS, 0);
    store_codes(c, element);
    return ST_OK;
}

static enum status run_quantize(const struct kernel_call *c)
{
    return quantize(c, plain);
}
static enum status run_quantize_gelu(const struct kernel_call *c)
{
    return quantize(c, of_gelu);
}
static enum status run_quantize_gelu_grad(const struct kernel_call *c)
{
    return quantize(c, of_gelu_grad);
}

static int64_t scratch_norm(const struct kernel *, const struct kernel_call *c)
{
    return type_elements(&c->in_type[1]) * (int64_t)sizeof(double);
}

/* Stores row `row` of s = a + dropout(b) in output 4, the LayerNorm of that row in scratch, and its
 * mean and rstd in outputs 5 and 6. The LayerNorm is rounded to the type of a. */
static void normalize_row(const struct kernel_call *c, int64_t row)
{
    int64_t C = type_columns(&c->in_type[1]), first = row * C;
    enum dtype dtype = c->in_type[1].dtype, w_dtype = c->in_type[4].dtype;
    double *y = (double *)c->scratch + first, sum = 0, squares = 0;
    for (int64_t i = 0; i < C; i++) {
        double keep = keep_pointwise(&c->attr->quantize.drop, c->in[2], first + i);
        float_store(dtype, c->out[4], first + i,
                    plain(c, first + i) + keep * float_load(dtype, c->in[3], first + i));
        y[i] = float_load(dtype, c->out[4], first + i);
        sum += y[i];
    }
    double mean = sum / (double)C;
    for (int64_t i = 0; i < C; i++) squares += (y[i] - mean) * (y[i] - mean);
    double rstd = 1 / sqrt(squares / (double)C + c->attr->quantize.eps);
    for (int64_t i = 0; i < C; i++) {
        double a = (y[i] - mean) * rstd * float_load(w_dtype, c->in[4], i);
        if (c->n_in == 6) a += float_load(w_dtype, c->in[5], i);
        y[i] = float_rounded(dtype, a);
    }
    float_store(c->out_type[5].dtype, c->out[5], row, mean);
    float_store(c->out_type[6].dtype, c->out[6], row, rstd);
}

static double of_scratch(const struct kernel_call *c, int64_t i)
{
    return ((const double *)c->scratch)[i];
}
static enum status run_quantize_add_layernorm(const struct kernel_call *c)
{
    for (int64_t row = 0; row < type_rows(&c->in_type[1]); row++) normalize_row(c, row);
    return quantize(c, of_scratch);
}

static bool fits_matmul(const struct kernel_call *c)
{
    return is_f32_bf16_or_f64(c->out_type[0].dtype) && dtype_is_float8(c->in_type[0].dtype) &&
           dtype_is_float8(c->in_type[1].dtype);
}

static int64_t scratch_matmul(const struct kernel *, const struct kernel_call *c)
{
    return (type_elements(&c->in_type[0]) + type_elements(&c->in_type[1])) * (int64_t)sizeof(float);
}

static void decode(const struct type *t, const uint8_t *from, float *to)
{
    float decoded[256];
    for (int i = 0; i < 256; i++) decoded[i] = (float)float8_load(t->dtype, (uint8_t)i);
    for (int64_t i = 0; i < type_elements(t); i++) to[i] = decoded[from[i]];
}

static void multiply_rows(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t K = c->in_type[0].dim[1], N = c->in_type[1].dim[0];
    const float *a = c->scratch, *b = a + type_elements(&c->in_type[0]);
    double scale =
        float_load(c->in_type[2].dtype, c->in[2], 0) * float_load(c->in_type[3].dtype, c->in[3], 0);
    for (int64_t m = first; m < last; m++)
        for (int64_t n = 0; n < N; n++) {
            double sum = 0;
            for (int64_t k = 0; k < K; k++) sum += (double)(a[m * K + k] * b[n * K + k]);
            sum *= scale;
            if (c->n_in == 5) sum += float_load(c->in_type[4].dtype, c->in[4], n);
            float_store(c->out_type[0].dtype, c->out[0], m * N + n, sum);
        }
}

static enum status run_matmul(const struct kernel_call *c)
{
    int64_t K = c->in_type[0].dim[1], N = c->in_type[1].dim[0];
    decode(&c->in_type[0], c->in[0], c->scratch);
    decode(&c->in_type[1], c->in[1], (float *)c->scratch + type_elements(&c->in_type[0]));
    parallel_ranges(c, c->in_type[0].dim[0], 1, N * K, multiply_rows);
    return ST_OK;
}

const struct kernel float8_kernels[] = {
    {.op = OP_QUANTIZE, .variant = "ref", .fits = fits_quantize, .run = run_quantize},
    {.op = OP_QUANTIZE_GELU, .variant = "ref", .fits = fits_quantize, .run = run_quantize_gelu},
    {.op = OP_QUANTIZE_GELU_GRAD, "ref", .fits = fits_quantize, .run = run_quantize_gelu_grad},
    {OP_QUANTIZE_ADD_LAYERNORM, "ref", .fits = fits_quantize, scratch_norm, NULL, NULL,
     run_quantize_add_layernorm},
    {OP_MATMUL_SCALED, "ref", .fits = fits_matmul, scratch_matmul, NULL, NULL, run_matmul},
    {.run = NULL},
};
