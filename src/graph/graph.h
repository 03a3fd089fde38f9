/* graph.h - a computation: nodes in a valid execution order, and their values.
 *
 * Nodes are only appended, each after the producers of its inputs, so the array is topologically
 * ordered. The first failure while a graph is built is stored in g->st and later calls do nothing,
 * so code that builds a graph needs no checks; its caller calls graph_status. Everything lives in
 * the arena. */
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
    int layer;         /* transformer block, -1 outside */
    int region;        /* recompute region; 0: none, so backward reads stored values */
    const char *scope; /* "h.3.attn.c_attn"; for a leaf: its name */
    int n_in, n_out;
    value in[MAX_IN], out[MAX_OUT];
    union attr attr;
    struct numerics numerics; /* all false if the operator lacks the flag NUMERICS */
};

struct value_info {
    struct type type;
    int producer; /* index of the node */
    int index;    /* among the outputs of the node */
};

struct graph_output {
    const char *name;
    value v;
};

struct graph {
    struct arena *arena;
    struct node *node;
    int nodes, node_capacity;
    struct value_info *info; /* info[i] is of value i; info[0] is unused */
    int values, value_capacity;
    struct graph_output *output; /* values that must be computed, in addition to state */
    int outputs, output_capacity;

    /* copied into new nodes */
    enum phase phase;
    int layer, region;
    const char *scope;
    struct numerics numerics; /* for operators with the flag NUMERICS */

    enum status st; /* the first failure, and its message */
    const char *st_text;
};

void graph_init(struct graph *g, struct arena *a);
/* The first failure while the graph was built, with its message; ST_OK if none. */
enum status graph_status(const struct graph *g);

/* Appends a node and returns its output 0; graph_out returns its other outputs. An output of more
 * than VALUE_BYTES_MOST bytes is the failure ST_MEMORY. `given` is the requested output type, for
 * shape rules whose inputs do not determine it; others ignore it. */
value graph_add(struct graph *g, enum op op, const union attr *attr, int n_in, const value *in,
                const struct type *given);
/* Appends a copy of node `n` of another graph, with the same phase, layer and scope. `map` gives
 * for each input of `n` the input of the copy. */
value graph_copy(struct graph *g, const struct graph *from, const struct node *n, const value *map);
/* Makes a value an output of the graph, with this name. */
void graph_output(struct graph *g, const char *name, value v);
/* The value 0 if there is no output with this name. */
value graph_find_output(const struct graph *g, const char *name);
/* The value 0 if there is no leaf with this storage and name. */
value graph_find_leaf(const struct graph *g, enum storage storage, const char *name);

const struct type *graph_type(const struct graph *g, value v);
const struct node *graph_producer(const struct graph *g, value v);
static inline value graph_out(value first, int i)
{
    return (value){first.i ? first.i + i : 0};
}

struct graph_scope {
    const char *scope;
    int layer;
};
/* Appends a word to the scope; sets the layer if `layer` >= 0. Returns the previous scope and
 * layer, which graph_leave restores. */
struct graph_scope graph_enter(struct graph *g, const char *word, int layer);
void graph_leave(struct graph *g, struct graph_scope before);

struct cost graph_node_cost(const struct graph *g, const struct node *n);

/* Appends the gradients of `loss` (one element) with respect to `wrt`, starting from `dloss`. It
 * is an error if the loss does not depend on a value of `wrt`. New nodes have the phase BACKWARD
 * and the scope of the node that they differentiate. */
enum status graph_differentiate(struct graph *g, value loss, value dloss, int n, const value *wrt,
                                value *ret_gradients);

/* Checks every invariant: order, arity, types according to the shape rules, one producer per
 * value, no read of state after it is overwritten. */
enum status graph_verify(const struct graph *g);

/* Prints one line per node. */
void graph_print(const struct graph *g, struct str *s);
/* Prints the graph for Graphviz. */
void graph_print_dot(const struct graph *g, struct str *s);

#endif
