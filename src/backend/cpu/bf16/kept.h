/* kept.h - dropout of attention as bits: the mask of base/rng.h, 256 elements at a time. */
#ifndef BACKEND_CPU_BF16_KEPT_H
#define BACKEND_CPU_BF16_KEPT_H

#include "backend/cpu/vector/vector.h"
#include "graph/op.h"

/* The 16 x 16 block q16, k16 of the attention matrix of head bh = b*H+h. Word to[i * stride] has a bit for
 * each key of query i, or if by_key for each query of key i; set: kept. */
void VEC(kept_bits)(uint16_t *to, int64_t stride, const struct dropout *d, uint32_t step,
                    int64_t bh, int64_t q16, int64_t k16, bool by_key);

#endif
