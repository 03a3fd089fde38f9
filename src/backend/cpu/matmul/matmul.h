/* matmul.h - the shapes of MATMUL and LINEAR in one form: for each matrix of a batch, C (M,N) =
 * A (M,K) B (K,N) + bias (N).
 *
 * A transpose is expressed by strides. Leading dimensions form one batch, or more rows of A
 * where all matrices share B. */
#ifndef BACKEND_CPU_MATMUL_MATMUL_H
#define BACKEND_CPU_MATMUL_MATMUL_H

#include "backend/kernel.h"

struct matmul {
    int64_t batch, M, N, K;
    int64_t a_row, a_column; /* strides in elements: A(m,k) is a[m * a_row + k * a_column] */
    int64_t b_row, b_column; /* B(k,n) is b[k * b_row + n * b_column] */
    bool bias;
    bool packed;             /* B has the layout that PACK made; b_row and b_column do not apply */
    enum dtype type, result; /* types of A and B, and of C; the bias is f32 */
};

struct matmul matmul_of(const struct kernel_call *c);
/* The matmul that PACK call `c` packs a weight for. */
struct matmul matmul_of_pack(const struct kernel_call *c);

#endif
