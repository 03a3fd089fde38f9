/* attention_exact.h - how far attention and its gradient are from double precision, at any length, in less than a second.
 *
 * The adjoint dy is zero but in a few query rows of two heads. Then y in these rows, and all of dq, dk and dv of the two
 * heads, need the scores of these rows alone, however long the sequence is. Rows lie evenly up to the
 * last one, at different places of tiles; of a long sequence not the very first: where few keys are seen y and dv are so much
 * larger than elsewhere that their norm would be all that counts. The heads are the first of the first sequence and the last of the last one, so that wrong strides show.
 * Formulas: FlashAttention-2 (Dao, arXiv 2307.08691, section 2.2). */
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
    int64_t b, h; /* sequence, head of queries */
    double *y;    /* (rows,D) */
    double *dqkv; /* (3,T,D): of the head's queries, and of the keys and the values that it meets */
};

struct attention_exact {
    struct attention_shape shape;
    const void *dy; /* (B,T,H*D) on the host; its other rows count as zero */
    int rows, heads;
    int64_t row[EXACT_ROWS]; /* rising */
    struct exact_head head[EXACT_HEADS];
};

/* Calculates all that from qkv and dy on the host, without dropout. `a` holds it; dy is kept. */
enum status attention_exact_make(struct attention_exact *e, const struct attention_shape *s,
                                 const void *qkv, const void *dy, struct arena *a);
/* Runs a bound plan of that shape, whose inputs "qkv" and "step" are fed; "dy" is overwritten. Its outputs "y" and "dqkv"
 * are held against the exact ones by norm (check_distance), the worse of the two heads counts. */
enum status attention_exact_error(const struct attention_exact *e, struct plan *p, double *ret_y,
                                  double *ret_dqkv);

#endif
