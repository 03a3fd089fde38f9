/* matmul.h - one description for MATMUL and LINEAR: for each matrix of a batch,
 * C (M,N) = A (M,K) @ B (K,N) + bias (N).
 *
 * Strides express transposes. The batch dimensions are flattened into `batch`, or into M (more
 * rows of A) if all matrices share one B. */
#ifndef BACKEND_CPU_MATMUL_MATMUL_H
#define BACKEND_CPU_MATMUL_MATMUL_H

#include "backend/kernel.h"

struct matmul {
    int64_t batch, M, N, K;
    int64_t a_row, a_column; /* strides in elements: A(m,k) is a[m * a_row + k * a_column] */
    int64_t b_row, b_column; /* B(k,n) is b[k * b_row + n * b_column] */
    bool bias;
    bool packed;             /* B is in the layout that PACK writes; b_row, b_column are unused */
    enum dtype type, result; /* types of A and B, and of C; the bias is f32 */
};

struct matmul matmul_of(const struct kernel_call *c);
/* The matmul whose weight the PACK call `c` packs. */
struct matmul matmul_of_pack(const struct kernel_call *c);

#endif
