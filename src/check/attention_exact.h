/* attention_exact.h - the error of attention and its gradient compared with double precision, at
 * any sequence length, in less than a second.
 *
 * The adjoint dy is zero except in a few query rows of two heads. Then y in these rows, and dq, dk
 * and dv of the two heads, depend only on the scores of these rows. The rows are evenly spaced up
 * to the last row, at different positions within tiles. The first rows are left out: with a causal
 * mask they see few keys and so have much larger y and dv, which would dominate the norm. The two
 * heads are the first of the first sequence and the last of the last sequence, so that wrong
 * strides show. The formulas are those of Dao, arXiv 2307.08691, section 2.2. */
#ifndef CHECK_ATTENTION_EXACT_H
#define CHECK_ATTENTION_EXACT_H

#include "graph/op.h"

struct arena;
struct plan;

struct attention_shape {
    enum dtype dtype;       /* of qkv, y and their gradients */
    int64_t B, T, H, KV, D; /* qkv (B,T,(H+2*KV)*D), y (B,T,H*D) */
    bool causal;
};

enum { EXACT_HEADS = 2, EXACT_ROWS = 64 };

struct exact_head {
    int64_t b, h; /* sequence, query head */
    double *y;    /* (rows,D) */
    double *dqkv; /* (3,T,D): gradients of the head's queries, keys and values */
};

struct attention_exact {
    struct attention_shape shape;
    const void *dy; /* (B,T,H*D) on the host; rows that are not in `row` count as zero */
    int rows, heads;
    int64_t row[EXACT_ROWS]; /* ascending */
    struct exact_head head[EXACT_HEADS];
};

/* Computes the exact values in `a` from qkv and dy on the host, without dropout. `e` keeps the
 * pointer dy. */
enum status attention_exact_make(struct attention_exact *e, const struct attention_shape *s,
                                 const void *qkv, const void *dy, struct arena *a);
/* Runs a bound plan of this shape whose inputs "qkv" and "step" are set; overwrites its input "dy".
 * Returns the relative errors of its outputs "y" and "dqkv" by norm, each of the worse head. */
enum status attention_exact_error(const struct attention_exact *e, struct plan *p, double *ret_y,
                                  double *ret_dqkv);

#endif
