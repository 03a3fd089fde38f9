/* program.h - a compiled configuration: graphs and their plans for one target (docs/engine.md).
 *
 * Compiling is a pure function of configuration, target and tuning table: the same three give the
 * same plans, byte for byte, with or without the device. It opens no device and measures nothing.
 * `strobe graph`, `plan` and `memory` show a program; an engine (engine.h) runs one. */
#ifndef ENGINE_PROGRAM_H
#define ENGINE_PROGRAM_H

#include "config/config.h"
#include "model/model.h"
#include "pass/pass.h"
#include "plan/plan.h"
#include "tuning/tuning.h"

enum graph_kind {
    GRAPH_MICRO,      /* forward, backward, gradients stored: the first micro-step */
    GRAPH_MICRO_MORE, /* forward, backward, gradients accumulated: further micro-steps */
    GRAPH_MICRO_LAST, /* as before, then gradients summed over the ranks: the last micro-step */
    GRAPH_UPDATE,     /* gradient norm, clipping, the optimizer */
    GRAPH_REFRESH,    /* rebuilds copies of changed weights (copies.h) */
    GRAPH_EVAL,       /* forward pass to the loss */
    GRAPH_LOGITS,     /* logits of one window of block_size tokens */
    GRAPH_DECODE,     /* logits of one more token, with a cache of keys and values */
    GRAPH_COUNT
};
/* "micro", "micro_more", "micro_last", "update", "refresh", "eval", "logits", "decode" */
const char *graph_kind_name(enum graph_kind kind);
/* Micro-steps of a rank in one training step. With several ranks, the last of several micro-steps
 * is GRAPH_MICRO_LAST. A single micro-step is GRAPH_MICRO, which then also sums over the ranks. */
int64_t micro_steps_of(const struct config *c);
/* The graph of micro-step i of a rank. */
enum graph_kind micro_step_kind(const struct config *c, int64_t i);

struct program {
    const struct config *config;
    struct model model;
    const struct target *target;
    const struct tuning *tuning;        /* NULL: defaults only */
    struct tuning_lookups lookups;      /* the lookups in `tuning` */
    const struct pass_packing *packing; /* NULL: weights are not packed */
    bool built[GRAPH_COUNT];
    struct graph graph[GRAPH_COUNT];
    struct plan plan[GRAPH_COUNT];
    int64_t bytes[STORAGE_COUNT]; /* needed to run any of the plans */
};

/* Compiles the graphs of `kinds` (a mask, 1 << kind), and GRAPH_REFRESH if needed. The program
 * lives in `a`; configuration and table must outlive it. */
enum status program_compile(struct program *ret, const struct config *c, int64_t vocab,
                            const struct target *target, const struct tuning *tuning,
                            unsigned kinds, struct arena *a);
/* Builds one graph, without a plan, up to the pass `last`; "model": no pass; NULL: all passes. */
enum status program_compile_to(struct program *ret, const struct config *c, int64_t vocab,
                               const struct target *target, const struct tuning *tuning,
                               enum graph_kind kind, const char *last, struct arena *a);
/* The bytes of all storage blocks. */
int64_t program_bytes(const struct program *p);

/* Builds one graph and runs its passes up to `last`, as in program_compile_to. `packing` comes from
 * copies_packing; NULL: weights are not packed. `kernels` may be NULL. */
enum status program_graph(enum graph_kind kind, const struct config *c, const struct model *m,
                          const struct pass_packing *packing, const struct pass_kernels *kernels,
                          const char *last, struct graph *ret_g, struct arena *a);

#endif
