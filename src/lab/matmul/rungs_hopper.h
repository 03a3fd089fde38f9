/* rungs_hopper.h - matmul on tensor cores by wgmma; a part of matmul_gpu.c. */
