/* attention.h - reference attention for tests of flash attention: plain loops in double precision
 * with the whole score matrix. */
#ifndef SUPPORT_ATTENTION_H
#define SUPPORT_ATTENTION_H

#include "base/arena.h"
#include "graph/op.h"

/* One attention: shapes, operands and results of the loops. If `narrow`, the operands are bfloat16
 * values, and the gradient uses y rounded to bfloat16. */
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

/* Generates random operands: scores span a few units, so some probabilities are large. */
void attention_draw(struct attention *p);
/* Fills y, lse and dqkv. */
void attention_solve(struct attention *p);
/* Number of elements of y; of a row of packed q, k, v; of all such rows. */
int64_t attention_elements(const struct attention *p);
int64_t attention_row(const struct attention *p);
int64_t attention_packed(const struct attention *p);

/* Rounds to the nearest bfloat16, ties to even. */
double attention_rounded(double x);
/* |got - want| / |want|; a large value if something is NaN. */
double attention_distance(const float *got, const double *want, int64_t n);

#endif
