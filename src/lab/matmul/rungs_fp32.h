/* rungs_fp32.h - matmul on CUDA cores; a part of matmul_gpu.c. */
    {"coalesced", "matmul/gpu/02_coalesced.cu", .shape = of_32, .types = LAB_F32 | LAB_BF16,
     .moved = coalesced, .bound = LOADS},
