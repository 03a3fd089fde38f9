/* op_rules.h - declares each rule that op_list.h names; private to graph/. */
#ifndef GRAPH_OP_RULES_H
#define GRAPH_OP_RULES_H

#include "graph/op.h"

/* A rule of several operators is declared several times. Nothing defines or uses the rules `none`:
 * op.c has NULL there. */
#define OP(name, level, family, least, most, attrs, flags, policy, f32, shape, grad, expand,   \
           costs)                                                                              \
    enum status shape_##shape(struct node *n, const struct type *in, const struct type *given, \
                              struct type *out);                                               \
    void grad_##grad(struct graph *g, const struct node *n, const value *dout, value *din);    \
    void expand_##expand(struct graph *g, const struct node *n, const value *in, value *out);  \
    struct cost cost_##costs(const struct node *n, const struct type *in, const struct type *out);
#include "graph/op_list.h"
#undef OP

/* The dtype of a result that may be bf16 or f32 for any input: that of `given` unless NULL. */
enum dtype result_dtype(enum dtype in, const struct type *given);

#endif
