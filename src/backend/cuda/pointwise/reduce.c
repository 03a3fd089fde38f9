/* Sums and maxima of rows, sums of columns (reduce.cu). */
#include "backend/cuda/cuda_kernels.h"

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    SHORT_ROW = 2048, /* up to this length a row has one warp */
    LONG_ROW = 32768, /* from this length on a row has several blocks, if there are few rows */
    FEW_ROWS = 256,   /* at most this many rows are few */
    PART = 8192,      /* a block of a long row has about this many elements or more */
};

/* --- rows --- */

static struct cuda_launch *reduce_launch(const struct kernel_call *c, struct cuda_launches *l,
                                         const char *entry, int64_t blocks)
{
    struct cuda_launch *k = launch_add(l, "reduce.cu", entry, blocks, THREADS);
    launch_define_type(k, "T_X", c->in_type[0].dtype);
    return k;
}

static void whole_rows(const struct kernel_call *c, struct cuda_launches *l)
{
    static const char *const entry[2][2] = {{"sum_row_blocks", "sum_row_warps"},
                                            {"max_row_blocks", "max_row_warps"}};
    int64_t rows = type_rows(&c->in_type[0]), n = type_columns(&c->in_type[0]);
    bool warps = n <= SHORT_ROW;
    struct cuda_launch *k = reduce_launch(c, l, entry[l->row->kernel.op == OP_MAX_ROW][warps],
                                          warps ? ceil_div(rows, WARPS) : rows);
    arg_in(k, "x", 0);
    arg_out(k, "y", 0);
    if (warps) arg_i64(k, "rows", rows);
    arg_i64(k, "n", n);
}

/* Few long rows: each is divided among blocks, and a second launch reduces. */
static void cut_rows(const struct kernel_call *c, struct cuda_launches *l)
{
    bool max = l->row->kernel.op == OP_MAX_ROW;
    int64_t rows = type_rows(&c->in_type[0]), n = type_columns(&c->in_type[0]);
    int64_t count = min_i64(ceil_div(n, PART), ceil_div(8 * l->device->processors, rows));
    int64_t part = launch_scratch(l, rows * count * (int64_t)sizeof(float));
    struct cuda_launch *k = reduce_launch(c, l, max ? "max_row_parts" : "sum_row_parts", count);
    launch_grid(k, count, rows, 1);
    arg_in(k, "x", 0);
    arg_scratch(k, "part", part);
    arg_i64(k, "n", n);
    k = reduce_launch(c, l, max ? "max_row_join" : "sum_row_join", ceil_div(rows, WARPS));
    arg_scratch(k, "x", part);
    arg_out(k, "y", 0);
    arg_i64(k, "rows", rows);
    arg_i64(k, "n", count);
}

/* --- columns --- */

/* A block has a stripe of columns and a share of the rows, at least 16 rows per thread; there are
 * enough shares for four blocks per SM. */
static void sum_leading(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *x = &c->in_type[0];
    int64_t n = type_elements(&c->out_type[0]), rows = type_elements(x) / n;
    bool vectors = n * dtype_size(x->dtype) % 16 == 0;
    int64_t stripe = vectors ? 256 / dtype_size(x->dtype) : 64, down = vectors ? 16 : 4;
    int64_t stripes = ceil_div(n, stripe), wanted = 4 * l->device->processors / stripes;
    int64_t shares = min_i64(wanted, rows / (4 * down));
    if (shares < 1) shares = 1;
    int64_t part = launch_scratch(l, shares > 1 ? shares * n * (int64_t)sizeof(float) : 0);
    struct cuda_launch *k =
        reduce_launch(c, l, vectors ? "sum_columns" : "sum_columns_any", stripes);
    launch_grid(k, stripes, shares, 1);
    arg_in(k, "x", 0);
    if (shares > 1)
        arg_scratch(k, "out", part);
    else
        arg_out(k, "out", 0);
    arg_i64(k, "rows", rows);
    arg_i64(k, "n", n);
    if (shares == 1) return;
    k = reduce_launch(c, l, "sum_columns_join", ceil_div(n, 32));
    arg_scratch(k, "part", part);
    arg_out(k, "y", 0);
    arg_i32(k, "parts", shares);
    arg_i64(k, "n", n);
}

static bool fits_cut(const struct kernel_call *c)
{
    return type_columns(&c->in_type[0]) >= LONG_ROW && type_rows(&c->in_type[0]) <= FEW_ROWS;
}
const struct cuda_row reduce_rows[] = {
    CUDA_ROW(SUM_ROW, "cut", "a", "a", fits_cut, cut_rows),
    CUDA_ROW(SUM_ROW, "cuda", "a", "a", NULL, whole_rows),
    CUDA_ROW(MAX_ROW, "cut", "a", "a", fits_cut, cut_rows),
    CUDA_ROW(MAX_ROW, "cuda", "a", "a", NULL, whole_rows),
    CUDA_ROW(SUM_LEADING, "cuda", "a", "f", NULL, sum_leading),
    CUDA_ROWS_END,
};
