/* matmul.h - MATMUL and LINEAR as one thing: batch times C (M,N) = A (M,K) B (K,N) + bias (N).
 *
 * A transpose is a pair of strides; leading dimensions are one batch, or rows of A where B is shared. */
#ifndef BACKEND_CPU_MATMUL_MATMUL_H
#define BACKEND_CPU_MATMUL_MATMUL_H

#include "backend/kernel.h"

struct matmul {
    int64_t batch, M, N, K;
    int64_t a_row, a_column; /* strides in elements: A(m,k) is a[m * a_row + k * a_column] */
    int64_t b_row, b_column; /* B(k,n) is b[k * b_row + n * b_column] */
    bool bias;
    bool packed;             /* B is what PACK made of it; its strides mean nothing */
    enum dtype type, result; /* of A and B; of C. The bias is f32. */
};

struct matmul matmul_of(const struct kernel_call *c);
/* The product that PACK call `c` is for. */
struct matmul matmul_of_pack(const struct kernel_call *c);

#endif
