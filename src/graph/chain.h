/* chain.h - the program of the operator CHAIN: a short list of fused pointwise operators.
 *
 * An operand of a step is an input of the chain, the result of an earlier step, or a constant. All
 * results have one shape; an input that is the second operand of a step may be broadcast to this
 * shape. Each result is rounded as if it were stored, so a chain is bit-identical to separate
 * steps. */
#ifndef GRAPH_CHAIN_H
#define GRAPH_CHAIN_H

#include "graph/op.h"

/* CHAIN_DRAWS: the maximum number of dropouts in a chain. */
enum { CHAIN_STEPS = 32, CHAIN_OUTPUTS = MAX_OUT, CHAIN_DRAWS = 2 };

enum chain_source { CHAIN_INPUT, CHAIN_RESULT, CHAIN_CONSTANT };
struct chain_operand {
    enum chain_source from;
    int index; /* CHAIN_INPUT: of the input; CHAIN_RESULT: of the step */
    double constant;
};

struct chain_step {
    enum op op;
    union attr attr;
    struct chain_operand operand[2]; /* of DROPOUT: the tensor, and the input `step` */
    enum dtype
        to; /* of CAST: the type of the result. Other results have the type of the operands. */
};

/* Input 0 must have the shape `shape`, so that output 0 may overwrite it. */
struct chain {
    struct type shape; /* its dtype is not used */
    int steps, outputs;
    struct chain_step step[CHAIN_STEPS];
    int output[CHAIN_OUTPUTS]; /* the steps whose results are outputs of the chain */
};

/* The number of operands, 1 or 2, that the operator has as a step; 0: it cannot be a step. */
int chain_operands(enum op op);
/* Sets ret_dtype[i] to the type of the result of step i. */
void chain_dtypes(const struct chain *c, const struct type *in, enum dtype *ret_dtype);

#endif
