/* norm_long.cu - layer norms and gradients of rows of any length, too long for registers. Without a
 * pointer `mean` the mean is 0: RMS norms. T_X: activations. Optional pointers may be NULL.
 *
 * A block reads its row three times; the gradient reads a row twice and once more for dw and dbias.
 * So the kernels are bound by the caches. Sums over a row are divided among threads by columns, and
 * norm_columns divides the rows into 32 shares. The order of additions is fixed: deterministic. */
#define LANES 1024
#include "rows.cuh"

/* Each thread reads only elements of x that it wrote itself, or that this kernel does not write. */
DEVICE void normalize(T_X *y, const T_X *x, float *mean, float *rstd, const float *w,
                      const float *bias, float eps, int columns)
{
    float sum = 0, squares = 0;
    for (int k = threadIdx.x; k < columns; k += LANES) sum += to_float(x[k]);
    const float m = mean ? row_sum(sum) / (float)columns : 0.0f;
    for (int k = threadIdx.x; k < columns; k += LANES) {
        const float a = to_float(x[k]) - m;
        squares += a * a;
    }
    const float r = 1.0f / sqrtf(row_sum(squares) / (float)columns + eps);
    for (int k = threadIdx.x; k < columns; k += LANES)
        y[k] = to<T_X>((to_float(x[k]) - m) * (r * w[k]) + (bias ? bias[k] : 0.0f));
    if (threadIdx.x != 0) return;
    if (mean) *mean = m;
    *rstd = r;
}

KERNEL(LANES)
layernorm_long(T_X *y, float *mean, float *rstd, const T_X *x, const float *w, const float *bias,
               float eps, int columns)
{
    const i64 row = blockIdx.x, first = row * columns;
    normalize(y + first, x + first, mean ? mean + row : 0, rstd + row, w, bias, eps, columns);
}

/* s may be a. */
KERNEL(LANES)
add_layernorm_long(T_X *s, T_X *y, float *mean, float *rstd, const T_X *a, const T_X *b,
                   const int *step, const float *w, const float *bias, u32 seed, u32 site,
                   int threshold, float eps, int columns)
{
    const i64 row = blockIdx.x, first = row * columns;
    const float kept = dropout_scale(threshold);
    for (int k = threadIdx.x; k < columns; k += LANES) {
        const i64 at = first + k;
        float branch = to_float(b[at]);
        if (threshold) {
            const words d = dropout_pointwise(seed, site, (u32)*step, (u64)at / 16);
            const int byte = (int)(at % 16);
            branch = byte_at(word_at(d, byte / 4), byte % 4) >= threshold ? branch * kept : 0.0f;
        }
        s[at] = to<T_X>(to_float(a[at]) + branch);
    }
    normalize(y + first, s + first, mean ? mean + row : 0, rstd + row, w, bias, eps, columns);
}

/* dx may be dy or more. */
KERNEL(LANES)
layernorm_grad_long(T_X *dx, const T_X *more, const T_X *dy, const T_X *x, const float *w,
                    const float *mean, const float *rstd, int columns)
{
    const i64 row = blockIdx.x, first = row * columns;
    const float m = mean ? mean[row] : 0.0f, r = rstd[row];
    float sum = 0, products = 0;
    for (int k = threadIdx.x; k < columns; k += LANES) {
        const float g = to_float(dy[first + k]) * w[k];
        sum += g;
        products += g * ((to_float(x[first + k]) - m) * r);
    }
    sum = mean ? row_sum(sum) / (float)columns : 0.0f;
    products = row_sum(products) / (float)columns;
    for (int k = threadIdx.x; k < columns; k += LANES) {
        const float h = (to_float(x[first + k]) - m) * r;
        const float a = r * (to_float(dy[first + k]) * w[k] - sum - h * products);
        dx[first + k] = to<T_X>(more ? a + to_float(more[first + k]) : a);
    }
}

/* dw and dbias: a block has 32 columns, and each of its warps has every 32nd row. Runs before dx
 * overwrites dy. */
KERNEL(LANES)
norm_columns(float *dw, float *dbias, const T_X *dy, const T_X *x, const float *mean,
             const float *rstd, i64 rows, int columns)
{
    enum { SHARES = LANES / WARP };
    __shared__ float part[2][SHARES][WARP];
    const int lane = threadIdx.x % WARP, share = threadIdx.x / WARP;
    const i64 column = (i64)blockIdx.x * WARP + lane;
    float products = 0, sum = 0;
    if (column < columns)
        for (i64 row = share; row < rows; row += SHARES) {
            const float d = to_float(dy[row * columns + column]);
            products +=
                d * ((to_float(x[row * columns + column]) - (mean ? mean[row] : 0.0f)) * rstd[row]);
            sum += d;
        }
    part[0][share][lane] = products;
    part[1][share][lane] = sum;
    __syncthreads();
    if (share > 1 || column >= columns) return;
    float all = 0;
    UNROLL for (int i = 0; i < SHARES; i++) all += part[share][i][lane];
    float *to = share == 0 ? dw : dbias;
    if (to) to[column] = all;
}
