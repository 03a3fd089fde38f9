/* hand.h - a hand-made graph on the CPU: plan it, set inputs, run it, read outputs. */
#ifndef SUPPORT_HAND_H
#define SUPPORT_HAND_H

#include "graph/build.h"
#include "plan/plan.h"
#include "tuning/target.h"

struct hand {
    struct arena arena;
    struct graph graph;
    struct plan plan;
    struct storage_blocks storage;
    const struct backend *backend;
    struct target target;
    void *context;
};

/* An empty graph to be filled through s->graph. */
void hand_init(struct hand *s);
/* Plans the graph and binds it to new memory; fails the test with the message if it cannot. */
void hand_plan(struct hand *s, const struct plan_options *options);
void hand_run(struct hand *s);
void hand_close(struct hand *s);

/* The address of an input, an output, or a leaf in that storage; fails the test if there is
 * none. */
void *hand_input(struct hand *s, const char *name);
float *hand_output(struct hand *s, const char *name);
float *hand_leaf(struct hand *s, enum storage storage, const char *name);

/* The same numbers each time, in -1 ... 1. */
void hand_fill(float *x, int64_t n, uint32_t sequence);
/* |a - b| / |b| (Euclidean norm); |a - b| if b is zero. */
double hand_distance(const float *a, const float *b, int64_t n);
/* Number of nodes of that operator. */
int hand_count(const struct graph *g, enum op op);
/* Fails the test with the text of the failure. */
void hand_ok(enum status st);

#endif
