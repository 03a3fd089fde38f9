/* attention_tile.h - what flash attention is made of: products of small tiles and what prepares them.
 *
 * Attention goes through the matrix of scores in tiles of TILE queries by TILE keys, which stay in the
 * first-level cache. A tile of scores lies transposed: one line for each key, queries side by side, so
 * that maxima, sums and exponentials over keys are plain vector arithmetic with a query in each lane. */
#ifndef BACKEND_CPU_VECTOR_ATTENTION_TILE_H
#define BACKEND_CPU_VECTOR_ATTENTION_TILE_H

#include "backend/cpu/attention_call.h"
#include "backend/cpu/vector/attention_tables.h"
#include "backend/cpu/vector/vector.h"
#include "base/rng.h"

enum { TILE = 64 };

/* What the causal mask spares in the tile on the diagonal. */
enum tile_skip {
    SKIP_NONE,
    SKIP_COLUMNS, /* row r needs the columns from r on (rounded down to vectors) */
    SKIP_AFTER, /* row r needs the terms 0 ... r of its sum (some more are added: they must be 0) */
    SKIP_BEFORE, /* row r needs the terms from r on (likewise) */
};

/* c[r][v] (+)= sum over j of a(r, j) b[j][v]: rows of c and b are whole vectors. */
struct tile_product {
    int64_t rows, vectors, depth;
    const float *a;
    int64_t a_stride;
    bool across; /* a(r, j) is a[j * a_stride + r] instead of a[r * a_stride + j] */
    const float *b;
    int64_t b_stride;
    float *c;
    int64_t c_stride;
    bool add;            /* to what c holds, */
    const float *factor; /* times factor[r] unless NULL */
    enum tile_skip skip;
};
void VEC(tile_product)(const struct tile_product *p);

/* Of one head, D numbers as whole vectors; of T, tiles. */
INLINE int64_t width_of(const struct heads *s)
{
    return round_up(s->D, W);
}
INLINE int64_t tiles_of(const struct heads *s)
{
    return ceil_div(s->T, TILE);
}

/* Dropout of one tile: word[k/16*4 + k%8/2][q] holds the bytes of four keys, key k's is byte
 * k%16/8*2 + k%2. On the diagonal only what the causal mask leaves is set. */
struct tile_bytes {
    uint32_t word[TILE / 4][TILE];
};
void VEC(tile_bytes)(struct tile_bytes *to, const struct dropout *d, uint32_t step, int64_t bh,
                     int64_t q, int64_t k, bool diagonal);
/* All bits set in the lanes that are kept: key k of the tile, queries from q on. */
INLINE vi tile_kept(const struct tile_bytes *t, int64_t k, int64_t q, int threshold)
{
    vi word;
    memcpy(&word, &t->word[k / 16 * 4 + k % 8 / 2][q], sizeof word);
    return ((word >> (int)(8 * (k % 16 / 8 * 2 + k % 2))) & 255) >= threshold;
}

/* 2^x for x <= 128, within 2 units in the last place; exactly 0 below 2^-127. The exponent is made by
 * adding a number whose last bits are the whole part, so nothing is converted. */
INLINE vf tile_exp2(vf x)
{
    const float to_whole = 12582912.0f + 127.0f; /* 1.5 * 2^23 + bias */
    x = vf_max(vf_all(-127.0f), x);
    vf shifted = x + to_whole;
    vf r = x - (shifted - to_whole);
    vf p =
        ((((1.326472731e-3f * r + 9.671512991e-3f) * r + 5.550733581e-2f) * r + 2.402224243e-1f) *
             r +
         6.931470037e-1f) *
            r +
        1.0f;
    return p * (vf)((vi)shifted << 23);
}

static const float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

#endif
