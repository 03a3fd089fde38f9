/* dropout.h - dropout as factors, 0 or dropout_scale(): the masks of base/rng.h, many at a time. */
#ifndef BACKEND_CPU_VECTOR_DROPOUT_H
#define BACKEND_CPU_VECTOR_DROPOUT_H

#include "backend/cpu/vector/vector.h"
#include "graph/op.h"

/* The factors of a pointwise site, a run at a time: calls of 16 in all lanes of the widest vectors. A
 * kernel that walks along its elements draws each number once, however its rows are cut. */
enum { DROPOUT_RUN = 256 };

struct dropout_run {
    int64_t first; /* -1: nothing drawn yet */
    float factor[DROPOUT_RUN];
};

/* The factors of element i and those after it: *ret_n of them, at least one. */
const float *VEC(dropout_at)(struct dropout_run *run, const struct dropout *d, uint32_t step,
                             int64_t i, int64_t *ret_n);
/* The 16 calls of a 16 x 16 block of an attention matrix: word[i][a*4+b], as rng.h has them. */
void VEC(dropout_words)(uint32_t word[4][16], const struct dropout *d, uint32_t step, int64_t bh,
                        int64_t q16, int64_t k16);
/* For a 16 x 16 block (rows q16*16 ..., columns k16*16 ...) of the attention matrix of head `bh`,
 * which is b*H+h. */
void VEC(dropout_block)(float *factor, const struct dropout *d, uint32_t step, int64_t bh,
                        int64_t q16, int64_t k16);

#endif
