/* formula_graph.h - a formula of the tensors x, y and z as a graph, with its gradient.
 *
 * Names 0, 1 and 2 of the formula are the tensors; all others are constants, which are folded. A
 * choice evaluates both sides; where a side is not chosen, its tensors are replaced by 0, so that
 * neither its value nor its gradient reaches the result, even if it is infinite or NaN. */
#ifndef LAB_FORMULA_GRAPH_H
#define LAB_FORMULA_GRAPH_H

#include "graph/graph.h"
#include "lab/formula.h"

/* FORMULA_NAMES: the tensors and at most that many constants. */
enum { FORMULA_TENSORS = 3, FORMULA_OPERATORS = 1000, FORMULA_NAMES = 32 };

/* What is known of a formula before its graph: tensors as masks, 1 << 0 for x. */
struct formula_uses {
    unsigned tensors; /* that it reads */
    unsigned slopes;  /* that it has a gradient of: not only in conditions */
};

/* ST_USAGE, with a caret: the formula reads no tensor, has a constant that is not finite, or a
 * power that no operator computes. `values`: of all names; those of the tensors are not read. */
enum status formula_check(const struct formula *f, const double *values, struct formula_uses *ret);

struct formula_shape {
    enum dtype dtype; /* of the tensors */
    int64_t n;        /* their elements */
    bool fused;       /* the passes of fusion=full; else one kernel for each operator */
    bool gradient;    /* also the gradient */
};

/* The graph after all passes. Weights in this order, each at a multiple of RANGE_ALIGNMENT
 * elements: the tensors that are read, then "df", the adjoint. Outputs: "f", and with the gradient
 * "dx", "dy" and "dz" of those that have one.
 *
 * Separate operators keep their results for the backward pass in the type of the tensors, as in an
 * eager framework. Fused ones compute in float and recompute them from the tensors. */
enum status formula_graph(const struct formula *f, const double *values,
                          const struct formula_shape *s, struct graph *g, struct arena *a);
/* "x", "dx" */
const char *formula_tensor_name(int i, bool gradient);

#endif
