/* Rotary position embedding and its table of angles (rope.cu, rope_table.cu). */
#include "backend/cuda/cuda_kernels.h"

#include <stdio.h>

enum { THREADS = 256, TIMES = 4, ACCESS = 16 }; /* as in the kernels */

/* The number of elements of the longest access that divides both heads and rows. */
static int64_t access_of(enum dtype dtype, int64_t D, int64_t C)
{
    int64_t each = ACCESS / (int64_t)dtype_size(dtype);
    while (D % each || C % each) each /= 2;
    return each;
}

/* x, table -> y */
static void rope(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *x = &c->in_type[0], *table = &c->in_type[1];
    int64_t rows = type_rows(x), T = table->dim[0], D = table->dim[1], C = type_columns(x);
    int64_t heads = c->attr->rope.heads, groups = ceil_div(heads, TIMES);
    int64_t each = access_of(x->dtype, D, C), unit = each < 2 ? 2 : each;
    int64_t turning = ceil_div(rows * groups * (D / unit), THREADS);
    int64_t rest = ceil_div(rows * ((C - heads * D) / each), (int64_t)THREADS * TIMES);
    struct cuda_launch *k = launch_add(l, "rope.cu", "rope", turning + rest, THREADS);
    launch_define_type(k, "T_X", x->dtype);
    launch_define(k, "D", D);
    launch_define(k, "EACH", each);
    arg_out(k, "y", 0);
    args_in(k, 0, "x table");
    arg_i64(k, "rows", rows);
    arg_i32(k, "T", T);
    arg_i32(k, "C", C);
    arg_i32(k, "heads", heads);
    arg_i32(k, "groups", groups);
    arg_f32(k, "sign", c->attr->rope.back ? -1 : 1);
    arg_i32(k, "turning", turning);
}

/* positions -> table */
static void rope_table(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *table = &c->out_type[0];
    int64_t pairs = type_elements(table) / 2;
    char theta[32];
    snprintf(theta, sizeof theta, "%.17g", c->attr->rope.theta);
    struct cuda_launch *k =
        launch_add(l, "rope_table.cu", "rope_table", ceil_div(pairs, THREADS), THREADS);
    launch_define_word(k, "THETA", theta);
    arg_out(k, "table", 0);
    arg_in(k, "position", 0);
    arg_i64(k, "pairs", pairs);
    arg_i32(k, "D", table->dim[1]);
}

const struct cuda_row rope_rows[] = {
    CUDA_ROW(ROPE, "cuda", "af", "a", NULL, rope),
    CUDA_ROW(ROPE_TABLE, "cuda", "i", "f", NULL, rope_table),
    CUDA_ROWS_END,
};
