/* plan.h - a graph with an execution order, kernels and addresses.
 *
 * plan_build chooses a kernel for each node, computes live ranges and assigns offsets, without a
 * device. Addresses point into storage blocks. The plans of a program run one after another, so
 * they share one block per kind of storage. plan_bind prepares the kernels and resolves addresses;
 * plan_run is then a loop that allocates nothing. The graph must outlive the plan. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "backend/kernel.h"
#include "graph/graph.h"

struct backend;
struct str;

struct plan_options {
    bool no_reuse; /* each value gets its own bytes */
    bool poison;   /* fill bytes with NaN before they are written and after their value dies */
    const char *variant;            /* prefer kernels of this variant ("ref"); NULL: the best */
    const struct tuning *tuning;    /* NULL: no tuning table */
    struct tuning_lookups *lookups; /* records lookups in the table; NULL: not recorded */
};

struct step {
    /* NULL: the step runs nothing (a view, a leaf, a STORE whose value was computed in place) */
    const struct kernel *kernel;
    struct kernel_call call;
    int node;
    struct cost cost;
    int64_t scratch_offset, scratch_bytes; /* scratch memory in the arena, bytes */
};

/* Placement and live range of a value: steps first ... last. Values that share bytes (views,
 * in-place results, state) have the same root, and so have the leaves of STORAGE_UNIT (graph/op.h)
 * that overlap. */
struct span {
    enum storage storage;
    int64_t offset, bytes; /* in bytes, from the start of the storage block */
    int first, last;
    int root;       /* the value that owns the bytes, which may be the value itself */
    int64_t within; /* a leaf that is a part of a unit: its offset from the root, in bytes */
};

struct plan {
    const struct graph *graph;
    const struct backend *backend;
    bool bound;    /* plan_bind has prepared the kernels */
    void *context; /* of the backend; set by plan_bind */
    struct plan_options options;
    struct step *step; /* one per node, with the same index */
    int steps;
    struct span *span;         /* of value i */
    int64_t arena_bytes;       /* values and scratch */
    char *base[STORAGE_COUNT]; /* after plan_bind */
};

struct storage_blocks {
    const struct backend *backend;
    void *context;
    struct communicator *communicator; /* NULL: one rank */
    int64_t bytes[STORAGE_COUNT];
    void *base[STORAGE_COUNT];
};

struct plan_hooks {
    void *user;
    bool recorded; /* the hooks only record events: a run with them may be captured and replayed */
    void (*before)(void *user, const struct plan *p, int step);
    enum status (*after)(void *user, const struct plan *p, int step);
};

/* Pure: the same graph, target and tuning give the same plan, which lives in `a`. `target` and all
 * that the options point to must outlive the plan. Fails with ST_UNSUPPORTED and the node's name if
 * a node has no kernel; with ST_MEMORY if the values are too large for any machine. */
enum status plan_build(struct plan *p, const struct graph *g, const struct target *target,
                       const struct plan_options *options, struct arena *a);
/* Undoes plan_bind. */
void plan_release(struct plan *p);

/* storage_reserve enlarges the sizes of the blocks to those that a plan needs; call it for every
 * plan, then storage_alloc once. storage_alloc keeps an address that is set already: that block
 * belongs to another owner, who frees it. */
void storage_reserve(struct storage_blocks *s, const struct plan *p);
enum status storage_alloc(struct storage_blocks *s);
void storage_free(struct storage_blocks *s);
/* Prepares the kernels on the context of `s` and resolves addresses. Call it once. */
enum status plan_bind(struct plan *p, const struct storage_blocks *s);

/* Runs every step. The message of a failing kernel names its node. `hooks` may be NULL. */
enum status plan_run(struct plan *p, const struct plan_hooks *hooks);
/* Runs the steps `from` to `to` - 1; the steps before `from` must have run. */
enum status plan_run_part(struct plan *p, int from, int to, const struct plan_hooks *hooks);
/* The first step that has a kernel and is not in the forward pass; without one, p->steps. */
int plan_backward_start(const struct plan *p);

/* The address of an input leaf or an output; valid after plan_bind. */
void *plan_input(const struct plan *p, const char *name);
void *plan_output(const struct plan *p, const char *name);
void *plan_address(const struct plan *p, value v);
/* Copies `data` into an input, which the plan must have. The plan reuses the memory of an input
 * after the last read, so feed all inputs before every run. */
enum status plan_feed(const struct plan *p, const char *input, const void *data, int64_t bytes);
/* Waits for the device, then copies `bytes` bytes of an output, starting at byte `from`. */
enum status plan_read(const struct plan *p, const char *output, int64_t from, void *ret_data,
                      int64_t bytes);

/* The number of kernels that run, and their total cost. */
int plan_kernels(const struct plan *p);
struct cost plan_cost(const struct plan *p);

/* Prints the table of steps: kernel, name, type, FLOPs, bytes. */
void plan_print(const struct plan *p, struct str *s);
/* Prints the values live at the memory peak, largest first: name, layer, live range. */
void plan_print_memory(const struct plan *p, int rows, struct str *s);

/* place_spans assigns each span an offset, a multiple of 64, such that spans with overlapping live
 * ranges do not overlap in memory, and returns the bytes needed. If these do not fit in 64 bits, it
 * returns SIZE_TOO_LARGE (base/checked.h) and the offsets are meaningless. Pure. */
struct place_span {
    int64_t bytes;
    int first, last;
    int64_t offset; /* result */
};
int64_t place_spans(struct place_span *span, int n, struct arena *scratch);
/* True if no two spans with overlapping live ranges overlap in memory. */
bool place_valid(const struct place_span *span, int n);

#endif
