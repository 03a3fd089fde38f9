/* score_grad.h - the elementwise part of the backward pass of attention: p' and ds of a block. */
#ifndef BACKEND_CPU_BF16_SCORE_GRAD_H
#define BACKEND_CPU_BF16_SCORE_GRAD_H

#include "backend/cpu/bf16/tile.h"

/* A block of 32 keys by 32 queries; each row of a tile is a key. */
struct score_block {
    const float *s, *dp;      /* two by two tiles: q k and dy v */
    int64_t row_stride;       /* from the tiles of keys 0 ... 15 to those of 16 ... 31, in tiles */
    float scale;              /* multiplies s; includes log2(e) */
    const float *lse, *delta; /* (32) each; lse is multiplied by log2(e) */
    int64_t keys;             /* p' = ds = 0 for keys from this number on; may exceed 32 */
    bool diagonal;            /* the causal mask crosses the block: query q uses keys up to q */
    const uint16_t *kept;     /* (32,kept_stride): a bit for each query; NULL: no dropout */
    int64_t kept_stride;
    float keep; /* dropout's scale, which multiplies dp */
    /* Results: p' and ds, each two tiles of kind a (tile.h), 16 keys by 32 queries. The tile of the
     * second 16 keys is p_row_stride bytes after the tile of the first 16. */
    char *p, *ds;
    int64_t p_row_stride;
    /* A copy of ds as two tiles of kind b, 32 keys by 16 queries in the order of pack_row_of. */
    char *interleaved;
};

/* p = 2^(scale s - lse); p' = p and dp' = keep dp where the mask keeps the element, else 0;
 * ds = p (dp' - delta). */
void VEC(score_gradients)(const struct score_block *b);

#endif
