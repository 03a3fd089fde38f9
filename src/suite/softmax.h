/* softmax.h - softmax against the matmuls around it, at each rung of fusion; private to suite/. */
#ifndef SUITE_SOFTMAX_H
#define SUITE_SOFTMAX_H

#include "base/judge.h"
#include "suite/profiled.h"

enum { SOFTMAX_RUNGS = 3 };
/* "primitive", "op", "full" */
extern const char *const softmax_rung[SOFTMAX_RUNGS];

/* What a pass through attention takes, forward, of all blocks of one step. */
struct softmax_side {
    double ms, flops, read, written; /* bytes of the plan */
};
struct softmax_pair {
    struct softmax_side matmuls, softmax; /* softmax with mask, scale and dropout */
    double matrix;                        /* bytes of all scores: T x T for each head and block */
    struct verdict verdict;               /* of softmax beside the matmuls, in pairs of one step */
};
/* False if the profile has none of it, as flash attention. */
bool softmax_pair_of(const struct profile *p, struct softmax_pair *ret);

/* The table, and a sentence for each model at its longest T. */
struct softmax_lines {
    struct sheet *sheet;
    struct sheet_table *table;
    int n, first; /* rows so far; the first of the last model and T */
    struct arena *a;
};
void softmax_open(struct softmax_lines *l, struct sheet *s, int rows, struct arena *a);
/* Adds a row; `reason`: why there is no profile, else NULL. */
void softmax_add(struct softmax_lines *l, const char *size, int64_t T, const char *rung,
                 const struct profile *p, const char *reason);
/* Ends the rows of one model; its sentence is of the last T. */
void softmax_end(struct softmax_lines *l);
void softmax_close(struct softmax_lines *l);

#endif
