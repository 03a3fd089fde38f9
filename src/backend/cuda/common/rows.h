/* rows.h - what the host sides of kernels over rows share; kernels/rows.cuh is the other side. */
#ifndef BACKEND_CUDA_COMMON_ROWS_H
#define BACKEND_CUDA_COMMON_ROWS_H

#include "backend/cuda/runtime/launch.h"
#include "backend/cuda/runtime/types.h"

/* Threads that take a row of so many columns together, `each` of them for a thread: a warp, or a multiple of
 * it up to 1024. */
int row_lanes(int64_t columns, int64_t each);
/* Elements of an access of 16 bytes, fewer where rows are no multiple of that. */
int row_access(enum dtype dtype, int64_t columns);

/* A launch over rows: defines LANES; the block is what rows.cuh expects. */
struct cuda_launch *row_launch(struct cuda_launches *l, const char *text, const char *entry,
                               int64_t rows, int lanes);
/* T_X, COLUMNS and EACH of rows of x. */
void row_define(struct cuda_launch *k, const struct type *x);
/* Seed, site and threshold, as kernels take them. */
void arg_dropout(struct cuda_launch *k, const struct dropout *d);
/* Seed, site, what dropout_kept of the texts compares bytes with, and what is kept is multiplied by. */
void arg_dropout_bytes(struct cuda_launch *k, const struct dropout *d);

#endif
