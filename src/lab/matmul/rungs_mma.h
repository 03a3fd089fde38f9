/* rungs_mma.h - matmul on tensor cores by mma.sync; a part of matmul_gpu.c. */
