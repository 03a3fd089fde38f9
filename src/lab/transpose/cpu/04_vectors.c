/* 04_vectors.c - blocks of W x W, transposed in registers.
 *
 * W rows of W floats are loaded as W vectors. In log2(W) steps, pairs of vectors exchange halves,
 * then quarters, and so on, all in registers; then W vectors are stored (vectors.h). A block costs
 * W loads and W stores instead of W x W of each. */
#include "lab/transpose/cpu/vectors.h"

RUNG(transpose_vectors)
{
    transpose_columns_of(c, 0, c->n[1]);
}
