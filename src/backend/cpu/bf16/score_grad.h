/* score_grad.h - what lies between the products of attention's backward pass: p' and ds of some scores. */
#ifndef BACKEND_CPU_BF16_SCORE_GRAD_H
#define BACKEND_CPU_BF16_SCORE_GRAD_H

#include "backend/cpu/bf16/tile.h"

/* 32 keys by 32 queries, a key in each line. */
struct score_block {
    const float *s, *dp;      /* two by two tiles: q k and dy v */
    int64_t down;             /* tiles from the first 16 keys to the others */
    float scale;              /* of s, to the base 2 */
    const float *lse, *delta; /* (32), lse to the base 2 */
    int64_t keys;             /* the others are none: p' = ds = 0; may be more than 32 */
    bool diagonal;            /* query q sees the keys up to q */
    const uint16_t *kept;     /* (32,kept_stride): a bit for each query; NULL: all are kept */
    int64_t kept_stride;
    float keep; /* times dp where it is kept */
    /* Results: p and ds are tiles a of (16 keys, 32 queries), p_down bytes apart. */
    char *p, *ds;
    int64_t p_down;
    /* ds once more, as tiles b of (32 keys, 16 queries), side by side; which query is in which column says
     * pack_row_of (pack.h). */
    char *woven;
};

/* p = 2^(scale s - lse), p' = p where kept, ds = p (keep dp - delta), dp = 0 where not kept. */
void VEC(score_gradients)(const struct score_block *b);

#endif
