/* dropout.h - dropout as factors, 0 or dropout_scale(): the masks of base/rng.h, many at a time. */
#ifndef BACKEND_CPU_VECTOR_DROPOUT_H
#define BACKEND_CPU_VECTOR_DROPOUT_H

#include "backend/cpu/vector/vector.h"
#include "graph/op.h"

/* Which elements of a pointwise site are kept, a run at a time: calls of 16 in all lanes of the widest
 * vectors. A kernel that walks along its elements draws each number once, however its rows are cut. */
enum { DROPOUT_RUN = 256 };

struct dropout_run {
    const struct dropout *d;
    uint32_t step;
    int64_t first; /* the run's first element; -1: nothing drawn yet */
    float scale;
#if defined(__AVX512F__)
    uint8_t kept[DROPOUT_RUN / 8 + 4]; /* a bit each; a load of 32 bits never ends behind it */
#else
    uint8_t drawn[DROPOUT_RUN + 16]; /* a byte each, kept from the threshold on */
#endif
};

/* A run of nothing yet. `d` must outlive it. */
struct dropout_run VEC(dropout_begin)(const struct dropout *d, uint32_t step);
/* Draws the run that element i is in. Returns how many elements from i on it has, at least one, and sets
 * where in it they begin. */
int64_t VEC(dropout_reach)(struct dropout_run *run, int64_t i, int64_t *ret_at);

/* a times the factors, 0 or the scale, of the elements from `at` of the run on; past its end, of none. */
INLINE vf dropout_times(const struct dropout_run *run, int64_t at, vf a)
{
#if defined(__AVX512F__)
    uint32_t bits;
    memcpy(&bits, run->kept + at / 8, sizeof bits);
    return _mm512_maskz_mul_ps((__mmask16)(bits >> at % 8), a, _mm512_set1_ps(run->scale));
#else
    vi kept = vi_bytes(run->drawn + at) >= run->d->threshold;
    return a * (vf)(kept & (vi)vf_all(run->scale));
#endif
}
/* The 16 calls of a 16 x 16 block of an attention matrix: word[i][a*4+b], as rng.h has them. */
void VEC(dropout_words)(uint32_t word[4][16], const struct dropout *d, uint32_t step, int64_t bh,
                        int64_t q16, int64_t k16);
/* For a 16 x 16 block (rows q16*16 ..., columns k16*16 ...) of the attention matrix of head `bh`,
 * which is b*H+h. */
void VEC(dropout_block)(float *factor, const struct dropout *d, uint32_t step, int64_t bh,
                        int64_t q16, int64_t k16);

#endif
