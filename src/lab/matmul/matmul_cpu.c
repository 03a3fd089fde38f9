/* The rungs of `matmul` on a CPU. */
#include "lab/ladders.h"

LAB_CPU_DECLARE(matmul_ikj);
const struct lab_rung lab_matmul_cpu[] = {
    {"ikj", "matmul/cpu/06_ikj.c", .run = LAB_CPU(matmul_ikj), .types = LAB_F32,
     .bound = "a load and a store of C for every product"},
    {"oneDNN", .variant = "onednn", .types = LAB_F32, .ceiling = true,
     .idea = "the library that training uses"},
    {0},
};
