/* attention_rows.h - conversion between rows of heads (fp32 or bf16) and tiles of fp32. */
#ifndef BACKEND_CPU_VECTOR_ATTENTION_ROWS_H
#define BACKEND_CPU_VECTOR_ATTENTION_ROWS_H

#include "backend/cpu/vector/act.h"
#include "backend/cpu/vector/attention_tile.h"

/* Rows of one head in memory: `rows` rows of `columns` elements, `stride` apart. */
struct tile_source {
    const act *at;
    int64_t stride, rows, columns;
};
/* Rows from `row` on of part 0, 1, 2 (q, k, v) of head `bh`, at most TILE of them. */
struct tile_source ACT(heads_part)(const struct heads *s, const act *qkv, int part, int64_t bh,
                                   int64_t row);
/* Rows from `row` on of head `bh` in y or dy, (B,T,C), at most TILE of them. */
struct tile_source ACT(heads_rows)(const struct heads *s, const act *y, int64_t bh, int64_t row);

/* to[column * TILE + row] = factor * source; rows up to the next multiple of W are zero. */
void ACT(tile_transpose)(float *to, const struct tile_source *s, float factor);
/* to[row * width + column] = factor * source, where width is the number of columns rounded up to W;
 * the added columns are zero. */
void ACT(tile_copy)(float *to, const struct tile_source *s, float factor);
/* Writes factor[row] * from[row * width + column] to `to`, with the rows, columns and stride of
 * `s`. If `factor` is NULL, it is 1. */
void ACT(tile_write)(act *to, const struct tile_source *s, const float *from, const float *factor);

/* The rows of `s` as whole fp32 vectors with a small stride: in place, or copied to `spare`. */
struct tile_rows {
    const float *at;
    int64_t stride;
};
struct tile_rows ACT(tile_rows)(const struct tile_source *s, float *spare);

#endif
