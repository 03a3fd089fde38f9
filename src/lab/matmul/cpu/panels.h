/* panels.h - packed panels and the micro-kernel that multiplies them, for rungs of matmul. */
#ifndef LAB_MATMUL_CPU_PANELS_H
#define LAB_MATMUL_CPU_PANELS_H

#include "lab/matmul/cpu/tile.h"

/* Copies a panel of A, TALL rows and k columns, to `to`, column after column. Rows of A are `row`
 * apart; only `rows` rows are left, and the other rows of the panel become zero. */
INLINE void pack_a(float *to, const float *a, int64_t row, int64_t rows, int64_t k)
{
    for (int64_t p = 0; p < k; p++)
        for (int i = 0; i < TALL; i++) to[p * TALL + i] = i < rows ? a[i * row + p] : 0;
}

/* Copies a panel of B, k rows and COLUMNS columns, to `to`, row after row. Rows of B are `row`
 * apart; only `columns` columns are left, and the other columns of the panel become zero. */
INLINE void pack_b(float *to, const float *b, int64_t row, int64_t columns, int64_t k)
{
    for (int64_t p = 0; p < k; p++)
        for (int v = 0; v < WIDE; v++) {
            const float *from = b + p * row + v * W;
            int64_t left = columns - v * W;
            vf x = {0};
            if (left >= W) x = vf_load(from);
            if (left > 0 && left < W) x = vf_load_part(from, left);
            vf_store(to + p * COLUMNS + v * W, x);
        }
}

/* Stores the product of two panels to a tile of C or, with `add`, adds the product to the tile. At
 * the edges of C only the existing rows and columns are stored. The tile of C is prefetched, since
 * it is needed as soon as the sums are complete. */
INLINE void micro_kernel(float *out, int64_t row, int64_t rows, int64_t columns, const float *a,
                         const float *b, int64_t k, bool add)
{
    enum { LINE = 16 }; /* floats of a cache line */
    vf sum[TALL][WIDE] = {0};
    for (int i = 0; i < TALL && i < rows; i++)
        for (int j = 0; j < COLUMNS; j += LINE) __builtin_prefetch(out + i * row + j);
    tile_multiply(sum, TALL, WIDE, a, 1, TALL, b, COLUMNS, k);
    for (int i = 0; i < TALL && i < rows; i++)
        for (int v = 0; v < WIDE; v++) {
            float *to = out + i * row + v * W;
            int64_t left = columns - v * W;
            if (left >= W)
                vf_store(to, add ? vf_load(to) + sum[i][v] : sum[i][v]);
            else if (left > 0)
                vf_store_part(to, add ? vf_load_part(to, left) + sum[i][v] : sum[i][v], left);
        }
}

#endif
