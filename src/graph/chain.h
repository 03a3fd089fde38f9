/* chain.h - what the operator CHAIN computes: a short program of pointwise operators.
 *
 * A step works on elements of the chain's inputs, on results of steps before it, or on a constant. All
 * results have one shape; an input may be repeated over it, as the second operand of a step. A result is
 * rounded to its type as it would be if it were stored, so a chain gives the bits that its steps give
 * one by one. */
#ifndef GRAPH_CHAIN_H
#define GRAPH_CHAIN_H

#include "graph/op.h"

/* CHAIN_DRAWS: steps that are dropouts. */
enum { CHAIN_STEPS = 16, CHAIN_DRAWS = 2 };

enum chain_source { CHAIN_INPUT, CHAIN_RESULT, CHAIN_CONSTANT };
struct chain_operand {
    enum chain_source from;
    int index; /* of the input, or of the step */
    double constant;
};

struct chain_step {
    enum op op;
    union attr attr;
    struct chain_operand operand[2]; /* of DROPOUT: what is dropped, and the input `step` */
    enum dtype to;                   /* CAST; any other result has the type of its operands */
};

/* Input 0 is a tensor of `shape`, so that output 0 may take its place. */
struct chain {
    struct type shape; /* its dtype says nothing */
    int steps, outputs;
    struct chain_step step[CHAIN_STEPS];
    int output[MAX_PARTS]; /* the steps whose results leave the chain */
};

/* 1 or 2: how many operands the operator has as a step; 0: a chain does not take it. */
int chain_operands(enum op op);
/* The type of each result. */
void chain_dtypes(const struct chain *c, const struct type *in, enum dtype *ret_dtype);
/* The result of step k, on inputs of those types. */
struct type chain_type(const struct chain *c, const enum dtype *dtype, int k);

#endif
