/* op_rules.h - declares each rule that op_list.h names; private to graph/. */
#ifndef GRAPH_OP_RULES_H
#define GRAPH_OP_RULES_H

#include "graph/op.h"

#define OP(name, level, family, least, most, attrs, flags, policy, f32, shaping, grad, expand, \
           costs)                                                                              \
    enum status shaping(struct node *n, const struct type *in, const struct type *given,       \
                        struct type *out);                                                     \
    void grad(struct graph *g, const struct node *n, const value *dout, value *din);           \
    void expand(struct graph *g, const struct node *n, const value *in, value *out);           \
    struct cost costs(const struct node *n, const struct type *in, const struct type *out);
#include "graph/op_list.h"
#undef OP

/* The dtype of a result that may be bf16 or f32: the dtype of `given`, or `in` if `given` is
 * NULL. */
enum dtype result_dtype(enum dtype in, const struct type *given);
/* The cost of reading inputs once, writing outputs once, and `flops` per element of `t`. */
struct cost cost_each(const struct node *n, const struct type *in, const struct type *out,
                      double flops, const struct type *t);

#endif
