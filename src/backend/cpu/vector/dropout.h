/* dropout.h - the dropout masks of base/rng.h in vectors, as factors 0 or dropout_scale(). */
#ifndef BACKEND_CPU_VECTOR_DROPOUT_H
#define BACKEND_CPU_VECTOR_DROPOUT_H

#include "backend/cpu/vector/vector.h"
#include "graph/op.h"

/* The mask of a pointwise site is generated for a run of consecutive elements at a time: each lane
 * of the widest vector makes one call of the generator, for 16 elements. So a kernel that goes
 * through its elements in order generates each random number once, whatever the row length is. */
enum { DROPOUT_RUN = 256 };

struct dropout_run {
    const struct dropout *d;
    uint32_t step;
    int64_t first; /* the run's first element; -1: the run is empty */
    float scale;
#if defined(__AVX512F__)
    uint8_t kept[DROPOUT_RUN / 8 + 4]; /* a bit for each element, padded for loads of 32 bits */
#else
    uint8_t bytes[DROPOUT_RUN + 16]; /* a byte >= the threshold keeps its element */
#endif
};

/* Returns an empty run; `d` must outlive the run. */
struct dropout_run VEC(dropout_begin)(const struct dropout *d, uint32_t step);
/* Generates the run that contains element i, unless it is the current run. Returns the number of
 * elements of the run from i on, at least 1; *ret_at is the offset of i in the run. */
int64_t VEC(dropout_seek)(struct dropout_run *run, int64_t i, int64_t *ret_at);

/* Multiplies a by the factors (0 or the scale) of W elements of the run, from offset `at` on. */
INLINE vf dropout_times(const struct dropout_run *run, int64_t at, vf a)
{
#if defined(__AVX512F__)
    uint32_t bits;
    memcpy(&bits, run->kept + at / 8, sizeof bits);
    return _mm512_maskz_mul_ps((__mmask16)(bits >> at % 8), a, _mm512_set1_ps(run->scale));
#else
    vi kept = vi_bytes(run->bytes + at) >= run->d->threshold;
    return a * (vf)(kept & (vi)vf_all(run->scale));
#endif
}
/* The random words of a 16 x 16 block of an attention matrix: word[i][a*4+b], as in rng.h. */
void VEC(dropout_words)(uint32_t word[4][16], const struct dropout *d, uint32_t step, int64_t bh,
                        int64_t q16, int64_t k16);
/* The factors of a 16 x 16 block, from (q16*16, k16*16), of the matrix of head bh = b*H+h. */
void VEC(dropout_block)(float *factor, const struct dropout *d, uint32_t step, int64_t bh,
                        int64_t q16, int64_t k16);

#endif
