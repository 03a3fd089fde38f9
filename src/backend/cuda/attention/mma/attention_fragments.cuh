/* attention_fragments.cuh - operands of mma.sync in the attention backward, in bf16 and tf32. A
 * step (the depth of an mma) has two 16-byte chunks: 16 columns of bf16 or 8 of tf32.
 *
 * Sources define M (rows of a warp / 16), N (rows of the other side in a step / 16), D, CHUNKS,
 * ROW_BYTES, TF32. */
#pragma once
#include "mma.cuh"

typedef float scores[M][2 * N][4]; /* 16M x 16N in the layout of mma_m16n8k16 */
typedef float sums[M][D / 8][4];   /* 16M x D */
/* A left operand 16M x D: its first KEPT steps are in registers, the other steps in shared memory.
 */
template <int KEPT> struct left_rows {
    u32 r[M][KEPT ? KEPT : 1][4];
};

extern __shared__ __align__(1024) u8 shared_memory[];

/* A lane's row address for ldmatrix of 16 rows of a right operand that is not transposed. */
DEVICE u32 lane_across(int lane)
{
    return swizzle<CHUNKS>(lane / 16 * 8 + lane % 8, lane / 8 % 2);
}
/* Address `at`, moved by `chunks` chunks (an even number) along the row. */
DEVICE u32 along(u32 at, int chunks)
{
    constexpr int W = swizzle_width(CHUNKS);
    return (at ^ (u32)(chunks % W * 16)) + (u32)(chunks / W * W * 16);
}

template <int COLUMNS> DEVICE void clear(float (&s)[M][COLUMNS][4])
{
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int n = 0; n < COLUMNS; n++)
            UNROLL for (int i = 0; i < 4; i++) s[m][n][i] = 0;
}
template <int KEPT> DEVICE void keep_rows(left_rows<KEPT> &a, u32 at)
{
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int k = 0; k < KEPT; k++)
            ldmatrix_x4(a.r[m][k], along(at + m * 16 * ROW_BYTES, 2 * k));
}

DEVICE void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    if constexpr (TF32)
        mma_m16n8k8_tf32(d, a, b0, b1);
    else
        mma_m16n8k16(d, a, b0, b1);
}
/* s += a b^T. `at` is the lane_across address of the 16 N rows of b. `left` is the lane_down
 * address of a, whose steps from KEPT on are in shared memory. */
template <int KEPT>
DEVICE void add_rows_by_rows(scores &s, const left_rows<KEPT> &a, u32 left, u32 at)
{
    UNROLL for (int k = 0; k < CHUNKS / 2; k++) {
        u32 b[N][4];
        UNROLL for (int n = 0; n < N; n++) ldmatrix_x4(b[n], along(at + n * 16 * ROW_BYTES, 2 * k));
        UNROLL for (int m = 0; m < M; m++) {
            u32 row[4];
            if (k >= KEPT) {
                ldmatrix_x4(row, along(left + m * 16 * ROW_BYTES, 2 * k));
            } else {
                UNROLL for (int i = 0; i < 4; i++) row[i] = a.r[m][k < KEPT ? k : 0][i];
            }
            UNROLL for (int n = 0; n < N; n++) {
                multiply(s[m][2 * n], row, b[n][0], b[n][1]);
                multiply(s[m][2 * n + 1], row, b[n][2], b[n][3]);
            }
        }
    }
}
