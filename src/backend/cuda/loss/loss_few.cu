/* loss_few.cu - the cross-entropy of loss.cu with its gradient, for short rows of whole accesses.
 *
 * T_X: logits and their gradient, which may share memory; OF_ROW: lanes of a row, a power of two up
 * to 32; each lane has one access of the row in registers. Bound by memory bandwidth, each logit
 * read and written once, or by latency: all rows of a small batch are in flight at once. Each block
 * stores the sum of its losses, and one block adds these sums: deterministic. */
#include "rows.cuh"

#define THREADS 256
enum { N = 16 / (int)sizeof(T_X), ROWS = THREADS / OF_ROW };

DEVICE float sum_of_row(float a)
{
    UNROLL for (int d = OF_ROW / 2; d; d /= 2) a += __shfl_xor_sync(~0u, a, d);
    return a;
}
DEVICE float most_of_row(float a)
{
    UNROLL for (int d = OF_ROW / 2; d; d /= 2) a = fmaxf(a, __shfl_xor_sync(~0u, a, d));
    return a;
}

/* parts: the sum of losses of each block. An invalid target makes the loss NaN. */
KERNEL(THREADS)
cross_entropy_few(T_X *dlogits, float *parts, const T_X *logits, const int *targets,
                  const float *dloss, int rows, int columns, int vocab)
{
    const i64 row = (i64)blockIdx.x * ROWS + threadIdx.x / OF_ROW;
    const int first = (int)threadIdx.x % OF_ROW * N;
    const bool there = row < rows && first < columns;
    const int target = row < rows ? targets[row] : 0;
    floats<N> x;
    if (there) x = load<N>(logits + row * columns + first);
    const float scale = *dloss / (float)rows;
    const bool exists = (u32)target < (u32)vocab;
    /* this lane has the target or, if the target is invalid, adds the loss */
    const bool mine = exists ? target >= first && target < first + N : first == 0;
    float top = LOWEST_F, others = 0, own = 0, at_target = NAN_F;
    UNROLL for (int e = 0; e < N; e++) if (there && first + e < vocab) top = fmaxf(top, x[e]);
    top = most_of_row(top);
    UNROLL for (int e = 0; e < N; e++)
    {
        const bool counts = there && first + e < vocab;
        const bool is_target = counts && first + e == target;
        if (is_target) at_target = x[e];
        x[e] = counts ? exp_for<T_X>(x[e] - top) : 0.0f;
        if (is_target)
            own = x[e];
        else
            others += x[e];
    }
    others = sum_of_row(others);
    own = __shfl_sync(~0u, own, (int)((u32)target / N) % OF_ROW, OF_ROW); /* 0: an invalid target */
    const float factor = scale / (others + own);
    UNROLL for (int e = 0; e < N; e++)
    {
        x[e] = first + e == target ? -factor * others : factor * x[e];
        if (first + e >= vocab) x[e] = 0;
    }
    if (there) store<N>(dlogits + row * columns + first, x);
    const float loss = row < rows && mine ? log1pf(own - 1.0f + others) + (top - at_target) : 0.0f;
    const float all = block_sum<THREADS>(loss);
    if (threadIdx.x == 0) parts[blockIdx.x] = all;
}

#define MEAN_THREADS 512
KERNEL(MEAN_THREADS) mean_of_parts(float *mean, const float *parts, int count, int rows)
{
    float sum = 0;
    for (int i = threadIdx.x; i < count; i += MEAN_THREADS) sum += parts[i];
    sum = block_sum<MEAN_THREADS>(sum);
    if (threadIdx.x == 0) *mean = sum / (float)rows;
}
