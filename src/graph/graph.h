/* graph.h - what is to be computed: nodes in an order that is a schedule, and their values.
 *
 * Nodes are only appended, inputs before users, so the array is topologically ordered by
 * construction. Everything lives in the arena. While a graph is built its first failure sticks
 * (g->st) and later calls do nothing, so model code needs no checks: the builder's caller asks
 * once with graph_status. */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "base/arena.h"
#include "graph/op.h"

struct str;

enum phase { PHASE_FORWARD, PHASE_BACKWARD, PHASE_UPDATE, PHASE_COUNT };
/* "forward", "backward", "update" */
const char *phase_name(enum phase phase);

struct node {
    enum op op;
    enum phase phase;
    int layer;         /* block of the model, -1 outside */
    int region;        /* what backward computes again together; 0: it keeps what it needs */
    const char *scope; /* "h.3.attn.c_attn"; of a leaf: its name */
    int n_in, n_out;
    value in[MAX_IN], out[MAX_OUT];
    union attr attr;
    struct numerics numerics; /* all false unless the operator has the flag NUMERICS */
};

struct value_info {
    struct type type;
    int producer; /* index of the node */
    int index;    /* which of its outputs */
};

struct graph_output {
    const char *name;
    value v;
};

struct graph {
    struct arena *arena;
    struct node *node;
    int nodes, node_capacity;
    struct value_info *info; /* of value i; info[0] is unused */
    int values, value_capacity;
    struct graph_output *output; /* what must be computed, besides state */
    int outputs, output_capacity;

    /* what new nodes are marked with */
    enum phase phase;
    int layer, region;
    const char *scope;
    struct numerics numerics; /* for operators with that flag */

    enum status st; /* sticky */
    const char *st_text;
};

void graph_init(struct graph *g, struct arena *a);
/* The first failure of building, with its words put back; ST_OK if there was none. */
enum status graph_status(const struct graph *g);

/* Appends a node and returns its output 0 (the others follow: output i has the handle .i + i).
 * `given` may be NULL where the shape rule needs none. */
value graph_add(struct graph *g, enum op op, const union attr *attr, int n_in, const value *in,
                const struct type *given);
/* Appends a copy of a node of another graph, with the same marks, on mapped inputs. */
value graph_copy(struct graph *g, const struct graph *from, const struct node *n, const value *map);
/* Marks a value as wanted by name. */
void graph_output(struct graph *g, const char *name, value v);
/* The value of that name; no value if absent. */
value graph_find_output(const struct graph *g, const char *name);
/* The leaf of that storage and name; no value if absent. */
value graph_find_leaf(const struct graph *g, enum storage storage, const char *name);

const struct type *graph_type(const struct graph *g, value v);
const struct node *graph_producer(const struct graph *g, value v);
static inline value graph_out(value first, int i)
{
    return (value){first.i ? first.i + i : 0};
}

/* Joins a word to the scope until graph_leave; `layer` is kept unless >= 0. Returns what leave takes. */
struct graph_scope {
    const char *scope;
    int layer;
};
struct graph_scope graph_enter(struct graph *g, const char *word, int layer);
void graph_leave(struct graph *g, struct graph_scope before);

struct cost graph_node_cost(const struct graph *g, const struct node *n);

/* Appends the gradients of `loss` (one element) with respect to `wrt`, starting from `dloss`. A
 * value of `wrt` that the loss does not depend on is an error. Marks what it adds BACKWARD, with
 * the scope of the node that it differentiates. */
enum status graph_differentiate(struct graph *g, value loss, value dloss, int n, const value *wrt,
                                value *ret_gradients);

/* Checks every invariant: order, arity, types as the rules say, one producer each, state read
 * before it is written. */
enum status graph_verify(const struct graph *g);

/* One line a node. */
void graph_print(const struct graph *g, struct str *s);
/* Graphviz. */
void graph_print_dot(const struct graph *g, struct str *s);

#endif
