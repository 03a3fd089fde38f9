#include "backend/cuda/cuda_kernels.h"

/* THE table of Strobe's own GPU kernels, by family. Among rows of the same operator the best comes
 * first. The rows of cuBLASLt come before this table. For some calls cuda_faster moves a row to the
 * front. */
static const struct cuda_row *const families[] = {
    attention_hopper_short_rows,
    attention_short_rows,
    attention_hopper_rows,
    attention_rows,
    attention_hopper_grad_rows,
    attention_grad_rows,
    norm_rows,
    rmsnorm_rows,
    gelu_rows,
    gated_rows,
    softmax_rows,
    loss_rows,
    optimizer_rows,
    collective_rows,
    pointwise_rows,
    reduce_rows,
    move_rows,
    rope_rows,
    quantize_rows,
    matmul_hopper_rows,
    matmul_hopper_plain_rows,
    matmul_tiles_rows,
    chain_rows,
};

/* Row i of cuBLASLt's rows and, after them, of the families; NULL after the last. */
const struct kernel *cuda_row_at(int i)
{
    for (const struct kernel *k = matmul_cublaslt_rows; k->run; k++)
        if (i-- == 0) return k;
    for (int f = 0; f < COUNT_OF(families); f++)
        for (const struct cuda_row *row = families[f]; row->kernel.run; row++)
            if (i-- == 0) return &row->kernel;
    return NULL;
}

const struct kernel *cuda_kernel(int op, const struct kernel_call *call, int n)
{
    const struct kernel *k, *faster = cuda_faster(op, call);
    if (faster && n-- == 0) return faster;
    for (int i = 0; (k = cuda_row_at(i)); i++)
        if ((int)k->op == op && k != faster && kernel_fits(k, call) && n-- == 0) return k;
    return NULL;
}
