/* attention_numbers.h - what attention on a GPU is tried on: numbers of many kinds in bf16, and what comes of them in double
 * precision, row by row, with dropout's mask by its definition (base/rng.h). */
#ifndef SUPPORT_ATTENTION_NUMBERS_H
#define SUPPORT_ATTENTION_NUMBERS_H

#include "graph/op.h"

enum numbers {
    NUMBERS_NORMAL,
    NUMBERS_SHARP, /* queries times 30: a row has nearly one key */
    NUMBERS_EQUAL, /* queries of zero: all keys alike */
    NUMBERS_KEY,   /* one key of 1e4 in all columns */
    NUMBERS_TINY,  /* q, k, v times 1e-20 */
    NUMBERS_SPIKED, /* some large queries and keys early, which outgrow what rows have seen of later keys */
    NUMBERS_SUNK /* scores of the last 200 keys are minus infinity in float */
};

struct attention_setting {
    int64_t B, T, H, KV, D; /* qkv (B,T,(H+2*KV)*D), y and dy (B,T,H*D), log-sum-exp (B,H,T) */
    bool causal;
    int threshold; /* of dropout; 0: none */
    enum numbers numbers;
    int rows; /* dy is zero in all rows but so many of each head, evenly up to the last; 0: in no row */
};

enum { NUMBERS_SEED = 11, NUMBERS_SITE = 5, NUMBERS_STEP = 3 /* dropout's key */ };

int64_t attention_columns(const struct attention_setting *s); /* of qkv */
/* Elements of sequences `first` to before `last`, for (T,columns) of each; both malloc'ed by the caller. */
void attention_draw_qkv(const struct attention_setting *s, int64_t first, int64_t last,
                        uint16_t *qkv);
void attention_draw_dy(const struct attention_setting *s, int64_t first, int64_t last,
                       uint16_t *dy);

/* One head of keys of one sequence, and its group of heads of queries: what is exact, and how large rows are where terms
 * do not cancel: the norm that terms of random signs would have. Rows: GROUP heads, then `rows` of each. */
struct attention_exact_rows {
    int64_t group, rows;
    int64_t *row;                 /* (rows): which of T */
    double *y, *lse, *slack, *dq; /* (group,rows,D), (group,rows) twice, (group,rows,D) */
    double *dk, *dv;              /* (T,D) */
    double *size_y, *size_dq;     /* (group,rows) */
    double *size_dk, *size_dv;    /* (T) */
};
/* slack: the largest sum of the magnitudes of q k's terms over a row's keys, scaled: a score's roundings are relative to it. qkv and dy are those of
 * sequence b alone. */
void attention_exact_rows(const struct attention_setting *s, const uint16_t *qkv,
                          const uint16_t *dy, int64_t b, int64_t kv,
                          struct attention_exact_rows *ret);
void attention_exact_free(struct attention_exact_rows *e);

uint16_t bf16_bits(double a);
double bf16_value(uint16_t bits);

#endif
