/* attention.h - attention by plain double loops that do have the matrix, for tests of flash attention. */
#ifndef SUPPORT_ATTENTION_H
#define SUPPORT_ATTENTION_H

#include "base/arena.h"
#include "graph/op.h"

/* One attention: shapes, operands and what the loops say. If `narrow`, the operands are numbers of bfloat16,
 * and the gradient is that of an operator whose input y is rounded to it. */
struct attention {
    int64_t B, H, T, D;
    int64_t KV; /* heads of keys and values; 0: H */
    union attr attr;
    int32_t step;
    bool narrow;
    float *qkv, *dy;        /* (B,T,row), (B,T,C) */
    double *y, *lse, *dqkv; /* (B,T,C), (B,H,T), (B,T,row) */
    struct arena arena;
};

/* Draws the operands: scores spread over a few units, so that some probabilities are large. */
void attention_draw(struct attention *p);
/* Fills y, lse and dqkv. */
void attention_solve(struct attention *p);
/* Elements of y; of a row of packed q, k, v; of all rows. */
int64_t attention_elements(const struct attention *p);
int64_t attention_row(const struct attention *p);
int64_t attention_packed(const struct attention *p);

/* The nearest number of bfloat16, the even one of two. */
double attention_rounded(double x);
/* |got - want| / |want|; what is no number is far away. */
double attention_distance(const float *got, const double *want, int64_t n);

#endif
