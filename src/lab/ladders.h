/* ladders.h - declares the ladders. Each is defined in its own C file; ladders.c lists them. */
#ifndef LAB_LADDERS_H
#define LAB_LADDERS_H

#include "lab/lab.h"

extern const struct lab_ladder lab_copy, lab_transpose, lab_elu, lab_reduce, lab_softmax,
    lab_layernorm, lab_divergence, lab_matmul, lab_attention;

/* The rungs of the matmul ladder. */
extern const struct lab_rung lab_matmul_gpu[], lab_matmul_cpu[];

#endif
