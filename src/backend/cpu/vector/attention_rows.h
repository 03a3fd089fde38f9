/* attention_rows.h - rows of heads, of either type of activations, as tiles of fp32 and back. */
#ifndef BACKEND_CPU_VECTOR_ATTENTION_ROWS_H
#define BACKEND_CPU_VECTOR_ATTENTION_ROWS_H

#include "backend/cpu/vector/act.h"
#include "backend/cpu/vector/attention_tile.h"

/* Where one head of q, k or v lies in memory: n rows of `columns` numbers. */
struct tile_source {
    const act *at;
    int64_t stride, rows, columns;
};
/* Rows from `row` on of part 0, 1, 2 (q, k, v) of head `bh`, at most TILE of them. */
struct tile_source ACT(heads_part)(const struct heads *s, const act *qkv, int part, int64_t bh,
                                   int64_t row);
/* The same of y or dy, (B,T,C). */
struct tile_source ACT(heads_rows)(const struct heads *s, const act *y, int64_t bh, int64_t row);

/* to[column * TILE + row] = factor * source; rows up to the next multiple of W are zero. */
void ACT(tile_transpose)(float *to, const struct tile_source *s, float factor);
/* to[row * width + column] = factor * source, width = columns rounded up to W; the rest is zero. */
void ACT(tile_copy)(float *to, const struct tile_source *s, float factor);
/* The rows and columns of `s`, at `to`: factor[row] * from[row * width + column]; NULL: no factor. */
void ACT(tile_write)(act *to, const struct tile_source *s, const float *from, const float *factor);

/* The rows of `s` as whole vectors of fp32 that lie close: themselves if they do, else a copy in `spare`. */
struct tile_lines {
    const float *at;
    int64_t stride;
};
struct tile_lines ACT(tile_lines)(const struct tile_source *s, float *spare);

#endif
