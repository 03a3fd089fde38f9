/* tile.h - a register tile in vectors, for rungs of matmul. */
#ifndef LAB_MATMUL_CPU_TILE_H
#define LAB_MATMUL_CPU_TILE_H

#include "lab/cpu.h"
#include "lab/matmul/cpu/blocks.h"

enum { TALL = VEC(TALL), WIDE = VEC(WIDE), COLUMNS = WIDE * W };

/* sum += A B for `tall` rows of A and `wide` vectors of columns of B. Callers pass constants for
 * both, so the compiler unrolls the loops and keeps the sums in registers. Numbers of A are `row`
 * apart in a column and `step` in a row; rows of B are `line` apart. */
INLINE void tile_multiply(vf sum[TALL][WIDE], int tall, int wide, const float *a, int64_t row,
                          int64_t step, const float *b, int64_t line, int64_t k)
{
    for (int64_t p = 0; p < k; p++) {
        vf x[WIDE];
        for (int v = 0; v < wide; v++) x[v] = vf_load(b + p * line + v * W);
        for (int i = 0; i < tall; i++)
            for (int v = 0; v < wide; v++) sum[i][v] += a[i * row + p * step] * x[v];
    }
}

#endif
