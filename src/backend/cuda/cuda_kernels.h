/* cuda_kernels.h - the GPU's kernel rows, by family; each table ends with a row without `run`. */
#ifndef BACKEND_CUDA_CUDA_KERNELS_H
#define BACKEND_CUDA_CUDA_KERNELS_H

#include "backend/cuda/runtime/launch.h"

extern const struct cuda_row pointwise_rows[]; /* arithmetic on elements, masks, casts, state */
extern const struct cuda_row chain_rows[];     /* fused pointwise chains: generated kernels */
extern const struct cuda_row reduce_rows[];    /* sums and maxima over rows and columns */
extern const struct cuda_row move_rows[]; /* split and merge heads, slices, embeddings, gathers */
extern const struct cuda_row rope_rows[];
extern const struct cuda_row quantize_rows[];
extern const struct cuda_row gelu_rows[];
extern const struct cuda_row gated_rows[]; /* SwiGLU */
extern const struct cuda_row norm_rows[];
extern const struct cuda_row rmsnorm_rows[];
extern const struct cuda_row softmax_rows[];
extern const struct cuda_row loss_rows[];
extern const struct cuda_row optimizer_rows[];
extern const struct cuda_row collective_rows[]; /* between ranks, on one GPU or several */
extern const struct cuda_row attention_hopper_short_rows[]; /* compute capability 9.0 only */
extern const struct cuda_row attention_short_rows[];        /* heads that fit in shared memory */
extern const struct cuda_row attention_hopper_rows[];       /* compute capability 9.0 only */
extern const struct cuda_row attention_rows[];
extern const struct cuda_row attention_hopper_grad_rows[]; /* compute capability 9.0 only */
extern const struct cuda_row attention_grad_rows[];
extern const struct cuda_row matmul_tiles_rows[];  /* used without cuBLASLt */
extern const struct cuda_row matmul_hopper_rows[]; /* with GELU, compute capability 9.0 only */
extern const struct cuda_row
    matmul_hopper_plain_rows[]; /* without GELU, compute capability 9.0 only */
extern const struct kernel matmul_cublaslt_rows[];

/* The functions of struct backend_kernels. */
const struct kernel *cuda_kernel(int op, const struct kernel_call *call, int n);
const struct kernel *cuda_row_at(int i);
bool cuda_fusion_pays(int op, const struct kernel_call *call);
enum status cuda_tune(void *context, int op, const struct kernel_call *call,
                      struct tuning_entry *ret);
/* A row that is faster for this call than the rows before it in the table; NULL: there is none. */
const struct kernel *cuda_faster(int op, const struct kernel_call *call);

#endif
