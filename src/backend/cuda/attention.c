#include "backend/cuda/cuda_kernels.h"

const struct cuda_row attention_rows[] = {CUDA_ROWS_END};
