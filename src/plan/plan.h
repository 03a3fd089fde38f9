/* plan.h - a graph with an order, kernels and addresses.
 *
 * plan_build chooses a kernel for each node, finds when each value lives and places it; no device is
 * needed, nothing is allocated. Storage is what the addresses point into: one block for each range, shared by all plans of
 * a program (they run one after the other). plan_bind prepares kernels and resolves addresses; plan_run is then a flat loop
 * that allocates nothing. The plan borrows the graph, which must outlive it. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "backend/kernel.h"
#include "graph/graph.h"

struct backend;
struct str;

struct plan_options {
    bool no_reuse;       /* every value its own bytes */
    bool poison;         /* bytes become NaN before they are written and when their value dies */
    const char *variant; /* prefer kernels of this variant ("ref"); NULL: best first */
    const struct tuning *tuning; /* NULL: nothing was measured */
    struct tuning_questions *questions;
};

struct step {
    const struct kernel
        *kernel; /* NULL: nothing to do (a view, a leaf, a store already in place) */
    struct kernel_call call;
    int node;
    struct cost cost;
    int64_t scratch_offset, scratch_bytes; /* in the arena */
};

/* Where a value is and when it lives: steps first ... last. Values that share bytes (views, in place,
 * state) have one root. */
struct span {
    enum storage storage;
    int64_t offset, bytes; /* bytes, from the start of the storage block */
    int first, last;
    int root; /* the value whose bytes these are; itself if its own */
};

struct plan {
    const struct graph *graph;
    const struct backend *backend;
    bool bound;    /* by plan_bind: kernels are prepared */
    void *context; /* of them */
    struct plan_options options;
    struct step *step; /* one for each node, same index */
    int steps;
    struct span *span;         /* of value i */
    int64_t arena_bytes;       /* values and scratch */
    char *base[STORAGE_COUNT]; /* after plan_bind */
};

struct storage_blocks {
    const struct backend *backend;
    void *context;
    int64_t bytes[STORAGE_COUNT];
    void *base[STORAGE_COUNT];
};

struct plan_hooks {
    void *user;
    bool recorded; /* they only mark what is started: a run with them may be recorded and played */
    void (*before)(void *user, const struct plan *p, int step);
    enum status (*after)(void *user, const struct plan *p, int step);
};

/* Pure; `target` and what the options point to must outlive the plan. A node for which the backend has no kernel is
 * ST_UNSUPPORTED and named. `a` holds the plan. */
enum status plan_build(struct plan *p, const struct graph *g, const struct target *target,
                       const struct plan_options *options, struct arena *a);
/* Undoes plan_bind. */
void plan_release(struct plan *p);

/* Grows the blocks' sizes to what the plan needs; call for every plan, then storage_alloc once. Two
 * storage_blocks may share a block: an address that is already set is kept, and freed by its owner. */
void storage_reserve(struct storage_blocks *s, const struct plan *p);
enum status storage_alloc(struct storage_blocks *s);
void storage_free(struct storage_blocks *s);
/* Prepares the kernels on the storage's context and resolves addresses; once. */
enum status plan_bind(struct plan *p, const struct storage_blocks *s);

/* Runs every step. A failing kernel names its node. `hooks` may be NULL. */
enum status plan_run(struct plan *p, const struct plan_hooks *hooks);
/* Runs steps from ... to - 1, which those before them must have preceded. */
enum status plan_run_part(struct plan *p, int from, int to, const struct plan_hooks *hooks);
/* The first step that runs a kernel and is not of the forward pass; as many as there are steps: none is. */
int plan_turn(const struct plan *p);

/* The address of a leaf input or of an output; after plan_bind. */
void *plan_input(const struct plan *p, const char *name);
void *plan_output(const struct plan *p, const char *name);
void *plan_address(const struct plan *p, value v);

/* Kernels that run, and what they do in sum. */
int plan_kernels(const struct plan *p);
struct cost plan_cost(const struct plan *p);

/* The table of steps: kernel, name, type, FLOPs, bytes. */
void plan_print(const struct plan *p, struct str *s);
/* What lives at the moment of the peak, largest first, with its name, layer and life. */
void plan_print_memory(const struct plan *p, int rows, struct str *s);

/* place.c: pure. Gives each span an offset so that no two that live together overlap, largest first, at
 * the lowest gap; returns the bytes needed. Offsets are multiples of 64. */
struct place_span {
    int64_t bytes;
    int first, last;
    int64_t offset; /* result */
};
int64_t place_spans(struct place_span *span, int n, struct arena *scratch);
/* True if no two spans that live together overlap. */
bool place_valid(const struct place_span *span, int n);

#endif
