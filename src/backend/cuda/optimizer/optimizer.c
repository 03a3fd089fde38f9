/* The optimizer on whole ranges: one launch for all parameters. Gradients are f32 or bf16. */
#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"

enum { THREADS = 256, EACH = 8, SQUARES_THREADS = 512 }; /* as in optimizer.cu */

/* The number of blocks of a sum of squares: at most as many as fill the device, and so few that
 * each block has a full round of work. */
static int64_t square_blocks(int64_t n, const struct target *d)
{
    int64_t most = 4 * (int64_t)d->processors, each = SQUARES_THREADS * 16;
    int64_t blocks = ceil_div(n, each);
    return blocks < most ? blocks : most;
}

static void sum_squares(const struct kernel_call *c, struct cuda_launches *l)
{
    int64_t n = type_elements(&c->in_type[0]), blocks = square_blocks(n, l->device);
    int64_t parts = launch_scratch(l, blocks * (int64_t)sizeof(float));
    struct cuda_launch *k = launch_add(l, "optimizer.cu", "square_parts", blocks, SQUARES_THREADS);
    launch_define(k, "COPY", 1);
    launch_define_type(k, "T_G", c->in_type[0].dtype);
    arg_scratch(k, "part", parts);
    arg_in(k, "x", 0);
    arg_i64(k, "n", n);
    k = launch_add(l, "optimizer.cu", "add_parts", 1, SQUARES_THREADS);
    launch_define(k, "COPY", 1);
    launch_define_type(k, "T_G", c->in_type[0].dtype);
    arg_out(k, "total", 0);
    arg_scratch(k, "part", parts);
    arg_i32(k, "parts", (int32_t)blocks);
}

/* w, m, v [, copy], g, lr, bias1, bias2, clip -> w, m, v [, copy] */
static void adamw(const struct kernel_call *c, struct cuda_launches *l)
{
    int64_t n = type_elements(&c->in_type[0]), block = THREADS * EACH;
    double beta1 = c->attr->adamw.beta1, beta2 = c->attr->adamw.beta2;
    struct cuda_launch *k = launch_add(l, "optimizer.cu", "adamw", ceil_div(n, block), THREADS);
    launch_define(k, "COPY", c->n_out == 4);
    launch_define_type(k, "T_G", c->in_type[c->n_out].dtype);
    args_out(k, 0, c->n_out == 4 ? "w m v copy" : "w m v");
    args_in(k, c->n_out, "g lr bias1 bias2 clip");
    arg_f32(k, "beta1", beta1);
    arg_f32(k, "rest1", 1 - beta1);
    arg_f32(k, "beta2", beta2);
    arg_f32(k, "rest2", 1 - beta2);
    arg_f32(k, "eps", c->attr->adamw.eps);
    arg_f32(k, "decay", c->attr->adamw.weight_decay);
    arg_i64(k, "decayed", c->attr->adamw.decay_elements);
    arg_i64(k, "n", n);
}

/* w, v [, copy], g, lr, clip -> w, v [, copy] */
static void sgdm(const struct kernel_call *c, struct cuda_launches *l)
{
    int64_t n = type_elements(&c->in_type[0]), block = THREADS * EACH;
    struct cuda_launch *k = launch_add(l, "optimizer.cu", "sgdm", ceil_div(n, block), THREADS);
    launch_define(k, "COPY", c->n_out == 3);
    launch_define_type(k, "T_G", c->in_type[c->n_out].dtype);
    args_out(k, 0, c->n_out == 3 ? "w v copy" : "w v");
    args_in(k, c->n_out, "g lr clip");
    arg_f32(k, "momentum", c->attr->sgd.momentum);
    arg_f32(k, "decay", c->attr->sgd.weight_decay);
    arg_i64(k, "decayed", c->attr->sgd.decay_elements);
    arg_i64(k, "n", n);
}

const struct cuda_row optimizer_rows[] = {
    CUDA_ROW(SUM_SQUARES, "two stages", "a", "f", NULL, sum_squares),
    CUDA_ROW(ADAMW, "vector", "fffaffff", "fff", NULL, adamw),
    CUDA_ROW(ADAMW_COPY, "vector", "fffbaffff", "fffb", NULL, adamw),
    CUDA_ROW(SGDM, "vector", "ffaff", "ff", NULL, sgdm),
    CUDA_ROW(SGDM_COPY, "vector", "ffbaff", "ffb", NULL, sgdm),
    CUDA_ROWS_END,
};
