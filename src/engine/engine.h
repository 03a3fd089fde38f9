/* engine.h - from a configuration to plans that run: graphs, passes, plans and their storage.
 *
 * One list of the graphs that a program may need; each is built by engine_graph, which is also what
 * `strobe graph`, `plan` and `memory` show. An engine holds the plans that its user asked for; they
 * share weights, gradients, moments and one arena. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "backend/backend.h"
#include "config/config.h"
#include "model/model.h"
#include "pass/pass.h"
#include "plan/plan.h"

enum graph_kind {
    GRAPH_MICRO,      /* forward, backward, gradients stored: the first micro-step */
    GRAPH_MICRO_MORE, /* the same, gradients accumulated: the further micro-steps */
    GRAPH_UPDATE,     /* gradient norm, clipping, AdamW */
    GRAPH_REFRESH, /* copies of the weights made anew (copies.h), after weights were drawn or loaded */
    GRAPH_EVAL,    /* the loss alone */
    GRAPH_LOGITS, /* logits of one window of block_size tokens */
    GRAPH_DECODE, /* logits of one more token, with a cache of keys and values */
    GRAPH_COUNT
};

struct engine {
    const struct config *config;
    struct model model;
    const struct pass_packing *packing; /* NULL: no weight is packed */
    const struct backend *backend;
    void *context;
    bool built[GRAPH_COUNT];
    struct graph graph[GRAPH_COUNT];
    struct plan plan[GRAPH_COUNT];
    struct storage_blocks storage;
    int64_t taken_before; /* bytes of the process or the device before storage was allocated */
};

/* "micro", "micro_more", "update", "refresh", "eval", "logits", "decode" */
const char *graph_kind_name(enum graph_kind kind);
/* What a backend's kernels gain by, for engine_graph. */
struct engine_kernels {
    struct pass_kernels kernels;
    /* private to engine.c */
    const struct backend *backend;
    void *context;
};
void engine_kernels_init(struct engine_kernels *k, const struct backend *b, void *context);
/* Builds one graph and runs its passes; stops after the pass named `last` ("model": before any).
 * `packing` is what copies_packing says of a backend, NULL: no weight is packed; `kernels` may be NULL, too. */
enum status engine_graph(enum graph_kind kind, const struct config *c, const struct model *m,
                         const struct pass_packing *packing, const struct pass_kernels *kernels,
                         const char *last, struct graph *ret_g, struct arena *a);

/* Opens the backend of that name and builds the plans of `kinds` (a mask, 1 << kind). Weights are zero
 * until they are drawn or loaded; whoever writes them calls engine_refresh. GRAPH_REFRESH is built
 * wherever it is needed. The configuration must outlive the engine. */
enum status engine_open(struct engine *e, const struct config *c, int64_t vocab, unsigned kinds,
                        const char *backend, struct arena *a);
/* The first half of it: plans and the sizes of their storage, but no memory. Nothing can be run. */
enum status engine_plan(struct engine *e, const struct config *c, int64_t vocab, unsigned kinds,
                        const char *backend, struct arena *a);
void engine_close(struct engine *e);
/* Brings what is derived from the weights up to date with them. */
enum status engine_refresh(struct engine *e);
/* Bytes by which the process, or what is taken of the device, has grown since storage was allocated, -1 if unknown: what engine_bytes
 * foretold, and what libraries and the run took besides. All of it counts once a step has touched it. */
int64_t engine_measured_bytes(const struct engine *e);
/* Bytes of each storage block, for people. */
int64_t engine_bytes(const struct engine *e);

#endif
