/* cuda_kernels.h - the GPU's kernel tables, by family; each ends with a row without run. */
#ifndef BACKEND_CUDA_CUDA_KERNELS_H
#define BACKEND_CUDA_CUDA_KERNELS_H

#include "backend/cuda/runtime/launch.h"

extern const struct cuda_row pointwise_rows[]; /* arithmetic on elements, masks, casts, state */
extern const struct cuda_row chain_rows[];     /* chains of these, each with a generated source */
extern const struct cuda_row reduce_rows[];    /* sums and maxima over rows and columns */
extern const struct cuda_row move_rows[];      /* heads, parts of rows, embeddings, picks */
extern const struct cuda_row rope_rows[];
extern const struct cuda_row quantise_rows[];
extern const struct cuda_row gelu_rows[];
extern const struct cuda_row gated_rows[]; /* SwiGLU */
extern const struct cuda_row norm_rows[];
extern const struct cuda_row rmsnorm_rows[];
extern const struct cuda_row softmax_rows[];
extern const struct cuda_row loss_rows[];
extern const struct cuda_row optimizer_rows[];
extern const struct cuda_row attention_hopper_short_rows[]; /* compute capability 9.0 alone */
extern const struct cuda_row attention_short_rows[];  /* heads that shared memory has room for */
extern const struct cuda_row attention_hopper_rows[]; /* by what compute capability 9.0 has */
extern const struct cuda_row attention_rows[];
extern const struct cuda_row attention_hopper_grad_rows[]; /* compute capability 9.0 alone */
extern const struct cuda_row attention_grad_rows[];
extern const struct cuda_row matmul_tiles_rows[];  /* products where there is no library */
extern const struct cuda_row matmul_hopper_rows[]; /* with GELU, compute capability 9.0 alone */
extern const struct cuda_row matmul_hopper_plain_rows[]; /* without, the same */
extern const struct kernel matmul_cublaslt_rows[];       /* cuBLASLt */

/* As struct backend says. */
const struct kernel *cuda_kernel(int op, const struct kernel_call *call, int n);
const struct kernel *cuda_row_at(int i);
bool cuda_gains(int op, const struct kernel_call *call);
enum status cuda_tune(void *context, int op, const struct kernel_call *call,
                      struct tuning_entry *ret);
/* The row that is faster for this call than those before it in the table; NULL: none is. */
const struct kernel *cuda_faster(int op, const struct kernel_call *call);

#endif
