/* Launches of norm_bf16.cu, norm_codes.cu and norm_bf16_grad.cu. */
#include "backend/cuda/common/rows.h"
#include "backend/cuda/norm/norm.h"

/* Constants of the kernel sources. */
enum { WARP = 32, ACCESS = 8, NORM_THREADS = 128, WARPS = 8 };
enum { AHEAD = 2, PART_WARPS = 16, CHUNK = 16 };
enum { TENSOR_CORES = 80, STEPS = 4, GRAD_STEPS = 3, BLOCKS = 2 };

/* The lanes of a row, 16 or 32, with at most `steps` accesses each; 0: neither fits. Half a warp
 * per row needs fewer instructions than a warp. */
static int lanes_of(const struct type *x, int steps)
{
    int64_t columns = type_columns(x);
    for (int lanes = WARP / 2; lanes <= WARP; lanes *= 2)
        if (columns % (ACCESS * lanes) == 0 && columns <= (int64_t)steps * ACCESS * lanes)
            return lanes;
    return 0;
}

static bool fits(const struct kernel_call *c, int steps)
{
    return cuda_device_of(c)->arch >= TENSOR_CORES && lanes_of(&c->in_type[0], steps) > 0;
}
bool fits_norm_bf16(const struct kernel_call *c)
{
    return fits(c, STEPS);
}

/* Transposed codes are written in runs of 16 rows. */
bool fits_quantize_add_layernorm(const struct kernel_call *c)
{
    const struct type *x = &c->in_type[1];
    return cuda_device_of(c)->arch >= TENSOR_CORES && lanes_of(x, STEPS) > 0 &&
           type_rows(x) % CHUNK == 0;
}

/* Shared memory of a block for prefetched rows; the sums of its warps reuse it at the end. */
static int64_t grad_bytes(const struct kernel_call *c)
{
    int64_t tensors = c->n_in >= 6 ? 3 : 2, columns = type_columns(&c->in_type[0]);
    int64_t rows = WARP / lanes_of(&c->in_type[0], GRAD_STEPS);
    int64_t coming = WARPS * AHEAD * tensors * rows * columns * 2, sums = WARPS * columns * 4;
    return coming > sums ? coming : sums;
}
/* Rejects a norm with bias, because there are no registers for the sums of the bias gradient. */
bool fits_norm_grad_bf16(const struct kernel_call *c)
{
    return !c->attr->norm.bias && fits(c, GRAD_STEPS) &&
           grad_bytes(c) <= cuda_device_of(c)->shared_bytes;
}

static struct cuda_launch *norm_launch(const struct kernel_call *c, struct cuda_launches *l,
                                       const char *entry, bool bias, bool dropout)
{
    const struct type *x = &c->in_type[0];
    int lanes = lanes_of(x, STEPS), together = NORM_THREADS / lanes;
    struct cuda_launch *k =
        launch_add(l, "norm_bf16.cu", entry, ceil_div(type_rows(x), together), NORM_THREADS);
    launch_define(k, "COLUMNS", type_columns(x));
    launch_define(k, "LANES", lanes);
    launch_define(k, "BIAS", bias);
    launch_define(k, "DROPOUT", dropout);
    return k;
}

/* x, w [, bias] -> y, mean, rstd */
void layernorm_bf16(const struct kernel_call *c, struct cuda_launches *l)
{
    struct cuda_launch *k = norm_launch(c, l, "layernorm_bf16", c->n_in > 2, false);
    args_out(k, 0, "y mean rstd");
    args_in(k, 0, c->n_in > 2 ? "x w bias" : "x w");
    arg_f32(k, "eps", c->attr->norm.eps);
    arg_i64(k, "rows", type_rows(&c->in_type[0]));
}

/* a, b, step, w [, bias] -> a + dropout(b), y, mean, rstd */
void add_layernorm_bf16(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct dropout *drop = &c->attr->norm.drop;
    struct cuda_launch *k =
        norm_launch(c, l, "add_layernorm_bf16", c->n_in > 4, drop->threshold > 0);
    args_out(k, 0, "sums y mean rstd");
    args_in(k, 0, c->n_in > 4 ? "a b step w bias" : "a b step w");
    arg_dropout_bytes(k, drop);
    arg_f32(k, "eps", c->attr->norm.eps);
    arg_i64(k, "rows", type_rows(&c->in_type[0]));
}

/* amax, a, step, b, w [, bias] -> amax, codes, transposed, scale, a + dropout(b), mean, rstd.
 * Blocks have 32 rows, or 16 if there would be fewer than two blocks per SM. */
void quantize_add_layernorm(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *x = &c->in_type[1];
    const struct dropout *drop = &c->attr->quantize.drop;
    int64_t chunks = type_rows(x) / CHUNK;
    int together = chunks >= 4 * l->device->processors ? 2 : 1;
    struct cuda_launch *k = launch_add(l, "norm_codes.cu", "quantize_add_layernorm",
                                       ceil_div(chunks, together), WARPS * WARP);
    launch_define(k, "COLUMNS", type_columns(x));
    launch_define(k, "LANES", lanes_of(x, STEPS));
    launch_define(k, "BIAS", c->n_in == 6);
    launch_define(k, "DROPOUT", drop->threshold > 0);
    launch_define(k, "E4M3", c->attr->quantize.to == DT_E4M3);
    launch_define(k, "ROWS", together * CHUNK);
    args_out(k, 0, "amax codes transposed scale sums mean rstd");
    args_in(k, 1, c->n_in == 6 ? "a step b w bias" : "a step b w");
    arg_dropout_bytes(k, drop);
    arg_f32(k, "eps", c->attr->quantize.eps);
    arg_i32(k, "rows", type_rows(x));
    arg_i32(k, "first", c->attr->quantize.first);
}

static void define_grad(const struct kernel_call *c, struct cuda_launch *k)
{
    launch_define(k, "COLUMNS", type_columns(&c->in_type[0]));
    launch_define(k, "LANES", lanes_of(&c->in_type[0], GRAD_STEPS));
    launch_define(k, "ADD", c->n_in >= 6);
    launch_define(k, "DROP", c->n_in == 7);
}

/* [more,] dy, x, w, mean, rstd [, step] -> dx, [dropout(dx),] dw */
void layernorm_grad_bf16(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *x = &c->in_type[0];
    bool drop = c->n_in == 7;
    int dw = drop ? 2 : 1, together = WARPS * WARP / lanes_of(x, GRAD_STEPS);
    int64_t columns = type_columns(x), blocks = ceil_div(type_rows(x), together);
    int64_t most = (int64_t)BLOCKS * l->device->processors;
    if (blocks > most) blocks = most;
    int64_t parts = launch_scratch(l, blocks * columns * (int64_t)sizeof(float));

    struct cuda_launch *k =
        launch_add(l, "norm_bf16_grad.cu", "layernorm_grad_bf16", blocks, WARPS * WARP);
    define_grad(c, k);
    k->shared_bytes = (unsigned)grad_bytes(c);
    args_out(k, 0, drop ? "dx dropped" : "dx");
    arg_scratch(k, "parts", parts);
    layernorm_grad_inputs(k, c);
    if (drop) arg_dropout_bytes(k, &c->attr->norm.drop);
    arg_i64(k, "rows", type_rows(x));

    k = launch_add(l, "norm_bf16_grad.cu", "norm_parts", ceil_div(columns, WARP),
                   PART_WARPS * WARP);
    define_grad(c, k);
    arg_out(k, "dw", dw);
    arg_scratch(k, "parts", parts);
    arg_i32(k, "count", (int32_t)blocks);
}
