/* 03_one_pass.cu - mean and variance in one pass, by combining parts.
 *
 * The mean of the squares minus the square of the mean would need one pass as well. But if the mean
 * is large compared with the deviations, this subtracts two nearly equal numbers, and little more
 * than their rounding errors is left. Instead each thread keeps the number, the mean and the sum of
 * squared deviations of the elements that it has read (Welford 1962). Two parts a and b are
 * combined (Chan, Golub and LeVeque 1979) by
 *     mean = mean_a + d n_b / n,  squares = squares_a + squares_b + d^2 n_a n_b / n,
 * with d = mean_b - mean_a and n = n_a + n_b. This reads the row twice instead of three times, but
 * needs a division for each element. */
#include "rows.cuh"

struct part {
    float n, mean, squares;
};

DEVICE part combined(part a, part b)
{
    float n = a.n + b.n, d = b.mean - a.mean, share = n > 0 ? b.n / n : 0;
    part r = {n, a.mean + d * share, a.squares + b.squares + d * d * a.n * share};
    return r;
}

KERNEL(256) layernorm(ELEMENT *y, const ELEMENT *x, const ELEMENT *weight, i64 rows, i64 columns)
{
    __shared__ part of_warp[256 / WARP];
    const ELEMENT *bias = weight + columns;
    x += blockIdx.x * columns;
    y += blockIdx.x * columns;
    part a = {0, 0, 0};
    for (i64 i = threadIdx.x; i < columns; i += 256) {
        float d = to_float(x[i]) - a.mean;
        a.n += 1;
        a.mean += d / a.n;
        a.squares += d * (to_float(x[i]) - a.mean);
    }
    UNROLL for (int k = WARP / 2; k; k /= 2)
    {
        part b = {__shfl_xor_sync(~0u, a.n, k), __shfl_xor_sync(~0u, a.mean, k),
                  __shfl_xor_sync(~0u, a.squares, k)};
        a = combined(a, b);
    }
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = a;
    __syncthreads();
    a = of_warp[0];
    UNROLL for (int w = 1; w < 256 / WARP; w++) a = combined(a, of_warp[w]);
    float factor = 1 / sqrtf(a.squares / columns + 1e-5f);
    for (i64 i = threadIdx.x; i < columns; i += 256)
        y[i] = to<ELEMENT>((to_float(x[i]) - a.mean) * factor * to_float(weight[i]) +
                           to_float(bias[i]));
}
