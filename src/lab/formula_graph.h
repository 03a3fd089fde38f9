/* formula_graph.h - a formula of the tensors x, y and z as a graph, with its gradient.
 *
 * Names 0, 1 and 2 of the formula are the tensors; the other names are constants, which are folded.
 * A where, min or max evaluates both of its operands for all elements. An operand reads 0 instead
 * of its tensors in the elements for which the other operand is chosen, so infinities and NaNs
 * there reach neither the result nor the gradient. */
#ifndef LAB_FORMULA_GRAPH_H
#define LAB_FORMULA_GRAPH_H

#include "graph/graph.h"
#include "lab/formula.h"

/* FORMULA_NAMES: the most names, of tensors and constants together. */
enum { FORMULA_TENSORS = 3, FORMULA_OPERATORS = 1000, FORMULA_NAMES = 32 };

/* Masks of tensors (1 << 0 is x). */
struct formula_uses {
    unsigned tensors; /* tensors that the formula reads */
    unsigned slopes;  /* tensors that have a gradient: read not only by conditions */
};

/* Finds the tensors that a formula uses. ST_USAGE, with a caret: the formula reads no tensor, has a
 * constant that is not a finite float, or has a power that no operator computes. `values` has a
 * value for each name; the values of tensors are not read. */
enum status formula_check(const struct formula *f, const double *values, struct formula_uses *ret);

struct formula_shape {
    enum dtype dtype; /* of the tensors */
    int64_t n;        /* elements of each tensor */
    bool fused;       /* true: the passes of fusion=full; false: one kernel for each operator */
    bool gradient;    /* also compute the gradient */
};

/* The graph after all passes. Its weights are the tensors that the formula reads, then "df", the
 * gradient of the result, each at a multiple of RANGE_ALIGNMENT elements. Its outputs are "f" and,
 * with the gradient, "dx", "dy" and "dz" of the tensors that have one.
 *
 * Separate operators store their results in the type of the tensors and keep them for the backward
 * pass, as in an eager framework. Fused operators compute in float; their backward pass recomputes
 * the results from the tensors. */
enum status formula_graph(const struct formula *f, const double *values,
                          const struct formula_shape *s, struct graph *g, struct arena *a);
/* "x", "dx" */
const char *formula_tensor_name(int i, bool gradient);

#endif
