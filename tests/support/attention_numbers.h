/* attention_numbers.h - test data for attention on a GPU: bf16 numbers of many kinds, and the exact
 * results in double precision, row by row, with the dropout mask of base/rng.h. */
#ifndef SUPPORT_ATTENTION_NUMBERS_H
#define SUPPORT_ATTENTION_NUMBERS_H

#include "graph/op.h"

enum numbers {
    NUMBERS_NORMAL,
    NUMBERS_SHARP,  /* queries times 30: nearly all weight of a row is on one key */
    NUMBERS_EQUAL,  /* queries of zero: equal weights for all keys */
    NUMBERS_KEY,    /* one key of 1e4 in all columns */
    NUMBERS_TINY,   /* q, k, v times 1e-20 */
    NUMBERS_SPIKED, /* some large queries and early keys, beyond the maxima of later keys */
    NUMBERS_SUNK    /* scores of the last 200 keys are minus infinity in float */
};

struct attention_setting {
    int64_t B, T, H, KV, D; /* qkv (B,T,(H+2*KV)*D), y and dy (B,T,H*D), log-sum-exp (B,H,T) */
    bool causal;
    int threshold; /* of dropout; 0: none */
    enum numbers numbers;
    int rows; /* rows of each head that have a dy, evenly spaced up to the last; 0: all */
};

enum { NUMBERS_SEED = 11, NUMBERS_SITE = 5, NUMBERS_STEP = 3 /* key of the dropout mask */ };

int64_t attention_columns(const struct attention_setting *s); /* of qkv */
/* Elements of sequences `first` (inclusive) to `last` (exclusive), (T,columns) each; both buffers
 * are the caller's. */
void attention_draw_qkv(const struct attention_setting *s, int64_t first, int64_t last,
                        uint16_t *qkv);
void attention_draw_dy(const struct attention_setting *s, int64_t first, int64_t last,
                       uint16_t *dy);

/* The exact results of one key head of one sequence and its group of query heads. size_*: the norms
 * that rows would have without cancellation (for terms of random signs). */
struct attention_exact_rows {
    int64_t group, rows;
    int64_t *row;                 /* (rows): positions in T */
    double *y, *lse, *slack, *dq; /* (group,rows,D), (group,rows) twice, (group,rows,D) */
    double *dk, *dv;              /* (T,D) */
    double *size_y, *size_dq;     /* (group,rows) */
    double *size_dk, *size_dv;    /* (T) */
};
/* slack of a row: scale * sum |q_d k_d|, the largest over its keys; the rounding error of a score
 * is proportional to this sum. qkv and dy hold sequence b only. */
void attention_exact_rows(const struct attention_setting *s, const uint16_t *qkv,
                          const uint16_t *dy, int64_t b, int64_t kv,
                          struct attention_exact_rows *ret);
void attention_exact_free(struct attention_exact_rows *e);

uint16_t bf16_bits(double a);
double bf16_value(uint16_t bits);

#endif
