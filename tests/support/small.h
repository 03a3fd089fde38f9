/* small.h - a hand-made graph on the CPU: plan it, feed it, run it, read it. */
#ifndef SUPPORT_SMALL_H
#define SUPPORT_SMALL_H

#include "graph/build.h"
#include "plan/plan.h"

struct small {
    struct arena arena;
    struct graph graph;
    struct plan plan;
    struct storage_blocks storage;
    const struct backend *backend;
    void *context;
};

/* An empty graph to be filled through s->graph. */
void small_init(struct small *s);
/* Plans the graph and binds it to memory of its own; fails the test with the message if it cannot. */
void small_plan(struct small *s, const struct plan_options *options);
void small_run(struct small *s);
void small_close(struct small *s);

/* The address of an input, an output, or a leaf of that storage; fails the test if there is none. */
void *small_input(struct small *s, const char *name);
float *small_output(struct small *s, const char *name);
float *small_leaf(struct small *s, enum storage storage, const char *name);

/* The same numbers each time, in -1 ... 1. */
void small_fill(float *x, int64_t n, uint32_t sequence);
/* |a - b| / |b| (Euclid); |a - b| where b is zero. */
double small_distance(const float *a, const float *b, int64_t n);
/* Nodes of that operator. */
int small_count(const struct graph *g, enum op op);
/* Fails the test with the words of the failure. */
void small_ok(enum status st);

#endif
