/* keep_mask.h - the dropout mask of attention (base/rng.h) as bits, 256 elements at a time. */
#ifndef BACKEND_CPU_BF16_KEEP_MASK_H
#define BACKEND_CPU_BF16_KEEP_MASK_H

#include "backend/cpu/vector/vector.h"
#include "graph/op.h"

/* The mask of block (q16, k16), 16 x 16, of the attention matrix of head bh = b*H+h. Word to[i *
 * stride] has a bit for each key of query i or, if key_major, for each query of key i; 1: kept. */
void VEC(keep_mask)(uint16_t *to, int64_t stride, const struct dropout *d, uint32_t step,
                    int64_t bh, int64_t q16, int64_t k16, bool key_major);

#endif
