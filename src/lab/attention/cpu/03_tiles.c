/* 03_tiles.c - online softmax in tiles (Milakov and Gimelshein 2018; Dao et al. 2022).
 *
 * A tile of 64 keys is transposed into L1 once and used by 64 queries, so that scores are products
 * of a number and a vector of keys, without sums across lanes. The largest score is known only at
 * the end: when the maximum grows, the sums so far are multiplied by e^(old - new). */
#include "lab/attention/cpu/tiles.h"

RUNG(attention_tiles)
{
    int64_t heads = c->n[0] * c->n[1], tokens = c->n[2];
    for (int64_t h = 0; h < heads; h++) {
        struct head of = head_of(c, h);
        for (int64_t i = 0; i < tokens; i += TILE)
            attend(c->scratch, &of, i, tokens - i < TILE ? tokens - i : TILE);
    }
}
