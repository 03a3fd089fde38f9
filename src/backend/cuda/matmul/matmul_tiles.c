/* Launches matmul_tiles.cu: matmuls of any shape without cuBLASLt, on FMAs, not tensor cores. */
#include "backend/cuda/cuda_kernels.h"
#include "backend/cuda/matmul/matmul.h"

enum { TILE_M = 128, TILE_N = 64, THREADS = 256, BATCH_MOST = 65535 };

static bool is_small(int64_t n)
{
    return n <= INT32_MAX;
}

static bool gemm_of_call(const struct kernel_call *c, struct matmul *ret)
{
    return gemm_of(c->n_in == 3 ? OP_LINEAR : OP_MATMUL, c, ret);
}

static bool fits(const struct kernel_call *c)
{
    struct matmul p;
    return gemm_of_call(c, &p) && is_small(p.M) && is_small(p.N) && is_small(p.K) &&
           is_small(p.batch);
}

static void launch_matmul(const struct kernel_call *c, struct cuda_launches *l)
{
    struct matmul p;
    bool fine = gemm_of_call(c, &p);
    BUG_IF(!fine, "a matmul that does not fit its kernel");
    int64_t tiles = ceil_div(p.M, TILE_M) * ceil_div(p.N, TILE_N);
    struct cuda_launch *k = launch_add(l, "matmul_tiles.cu", "matmul", tiles, THREADS);
    launch_grid(k, tiles, p.batch < BATCH_MOST ? p.batch : BATCH_MOST, 1);
    launch_define_type(k, "T_A", p.in);
    launch_define_type(k, "T_C", p.out);
    launch_define_type(k, "T_BIAS", p.bias ? c->in_type[2].dtype : DT_F32);
    launch_define(k, "TA", p.ta);
    launch_define(k, "TB", p.tb);
    args_in(k, 0, "a b");
    arg_in_if(k, p.bias, "bias", 2);
    arg_out(k, "c", 0);
    arg_i32(k, "M", p.M);
    arg_i32(k, "N", p.N);
    arg_i32(k, "K", p.K);
    arg_i32(k, "batch", p.batch);
}

const struct cuda_row matmul_tiles_rows[] = {
    CUDA_ROW(MATMUL, "tiles", NULL, NULL, fits, launch_matmul),
    CUDA_ROW(LINEAR, "tiles", NULL, NULL, fits, launch_matmul),
    CUDA_ROWS_END,
};
