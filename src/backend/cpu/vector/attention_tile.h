/* attention_tile.h - the building blocks of flash attention: matmuls of small tiles, dropout
 * masks, exponentials.
 *
 * Attention processes the matrix of scores in tiles of TILE queries by TILE keys, which stay in
 * L1. A tile of scores is stored transposed, one row for each key, so that maxima, sums and
 * exponentials over keys are plain vector arithmetic with one query in each lane. */
#ifndef BACKEND_CPU_VECTOR_ATTENTION_TILE_H
#define BACKEND_CPU_VECTOR_ATTENTION_TILE_H

#include "backend/cpu/runtime/attention_call.h"
#include "backend/cpu/vector/tables.h"
#include "backend/cpu/vector/vector.h"
#include "base/rng.h"

enum { TILE = 64 };

/* The work that the causal mask saves in a tile on the diagonal. */
enum tile_skip {
    SKIP_NONE,
    SKIP_COLUMNS, /* row r needs the columns from r on (rounded down to vectors) */
    /* Row r needs terms 0 ... r of its sum. The kernel may add later terms, so the caller makes
     * them 0. */
    SKIP_AFTER,
    /* Row r needs the terms from r on. The kernel may add earlier terms, so the caller makes
     * them 0. */
    SKIP_BEFORE,
};

/* c[r][v] (+)= sum over j of a(r, j) b[j][v]: rows of c and b are whole vectors. */
struct tile_matmul {
    int64_t rows, vectors, depth;
    const float *a;
    int64_t a_stride;
    bool across; /* a(r, j) is a[j * a_stride + r] instead of a[r * a_stride + j] */
    const float *b;
    int64_t b_stride;
    float *c;
    int64_t c_stride;
    bool add;            /* add to c instead of overwriting it */
    const float *factor; /* with add: multiplies row r of c by factor[r] first; may be NULL */
    enum tile_skip skip;
};
void VEC(tile_matmul)(const struct tile_matmul *p);

/* Columns of one head, rounded up to whole vectors, and the number of tiles in T rows. */
INLINE int64_t width_of(const struct heads *s)
{
    return round_up(s->D, W);
}
INLINE int64_t tiles_of(const struct heads *s)
{
    return ceil_div(s->T, TILE);
}

/* The random bytes of one tile for dropout: word[k/16*4 + k%8/2][q] holds those of four keys;
 * the byte of key k is number k%16/8*2 + k%2. Words that the causal mask hides are not set. */
struct tile_mask {
    uint32_t word[TILE / 4][TILE];
};
void VEC(tile_mask)(struct tile_mask *to, const struct dropout *d, uint32_t step, int64_t bh,
                    int64_t q, int64_t k, bool diagonal);
/* All bits are set in lanes that dropout keeps, for key k of the tile and W queries from q on. */
INLINE vi tile_keep(const struct tile_mask *t, int64_t k, int64_t q, int threshold)
{
    vi word;
    memcpy(&word, &t->word[k / 16 * 4 + k % 8 / 2][q], sizeof word);
    return ((word >> (int)(8 * (k % 16 / 8 * 2 + k % 2))) & 255) >= threshold;
}

/* 2^x for x < 127.5, with an error of at most 2 units in the last place; exactly 0 for x <= -126.5.
 * An addition puts the integer part into the last bits of the sum, so no conversion is needed. */
INLINE vf tile_exp2(vf x)
{
    const float to_integer = 12582912.0f + 127.0f; /* 1.5 * 2^23 + bias */
    x = vf_max(vf_all(-127.0f), x);
    vf shifted = x + to_integer;
    vf r = x - (shifted - to_integer);
    vf p =
        ((((1.326472731e-3f * r + 9.671512991e-3f) * r + 5.550733581e-2f) * r + 2.402224243e-1f) *
             r +
         6.931470037e-1f) *
            r +
        1.0f;
    return p * (vf)((vi)shifted << 23);
}

#endif
