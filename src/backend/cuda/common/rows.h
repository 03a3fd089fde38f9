/* rows.h - shared by the host sides of kernels over rows (rows.cuh). */
#ifndef BACKEND_CUDA_COMMON_ROWS_H
#define BACKEND_CUDA_COMMON_ROWS_H

#include "backend/cuda/runtime/launch.h"

/* Threads for a row of `columns`, `each` columns per thread: a multiple of a warp, at most 1024. */
int row_lanes(int64_t columns, int64_t each);
/* The number of elements of a 16-byte access, halved until it divides the length of a row. */
int row_access(enum dtype dtype, int64_t columns);

/* Adds a launch over rows: defines LANES, and sets the block to ROW_THREADS of rows.cuh. */
struct cuda_launch *row_launch(struct cuda_launches *l, const char *text, const char *entry,
                               int64_t rows, int lanes);
/* Defines T_X, COLUMNS and EACH for rows of x. */
void row_define(struct cuda_launch *k, const struct type *x);
/* Adds the arguments seed, site and threshold. */
void arg_dropout(struct cuda_launch *k, const struct dropout *d);
/* Adds seed, site, less and carry of dropout_kept (device.cuh), and the scale of kept elements. */
void arg_dropout_bytes(struct cuda_launch *k, const struct dropout *d);

#endif
