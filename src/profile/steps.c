/* Finds the begin and end of steps in a device's trace. Copies to the device for a step, before its
 * first kernel, carry the mark of that step, so its inputs count for it. */
#include "profile/collect.h"

int steps_mark(const struct marks *m, int iteration)
{
    return m->marks + iteration;
}

struct finding {
    const struct marks *marks;
    struct trace *trace;
    struct seen_step *ret;
    int most, steps;
    /* the current step */
    bool begun, spoiled;
    int iteration, replay;
    int64_t start_ns;
    /* Inputs after the last known activity of the current step: the next step may begin there. */
    int64_t inputs;  /* number of the activity; -1: none */
    int next;        /* the iteration of these inputs */
    int64_t busy_ns; /* the end of all activities so far, without those inputs */
};

/* A step begins where the previous one ends: the time in between is idle time before its inputs. */
static void begin_step(struct finding *f, int64_t i)
{
    const struct activity *first = &f->trace->activity[f->inputs >= 0 ? f->inputs : i];
    int64_t now = first->start_ns;
    if (f->begun && f->busy_ns < now) now = f->busy_ns;
    if (f->begun && !f->spoiled && f->steps < f->most)
        f->ret[f->steps++] = (struct seen_step){{f->start_ns, now}, f->iteration};
    f->iteration = f->inputs >= 0 ? f->next : f->iteration + 1;
    f->start_ns = now;
    f->begun = true;
    f->spoiled = false;
    f->inputs = -1;
}

/* Inputs that are staged while the previous step still runs do not begin a step. */
static void see_inputs(struct finding *f, int64_t i, int iteration)
{
    if (f->inputs >= 0 || (f->begun && iteration == f->iteration)) return;
    f->inputs = i;
    f->next = iteration;
}

/* An activity of a replay with unknown kernels; it may belong to the step of the last inputs. */
static void see_unmatched(struct finding *f, int64_t i)
{
    int replay = f->trace->activity[i].replay;
    bool goes_on = replay >= 0 && replay == f->replay;
    if (f->inputs >= 0 && !goes_on) begin_step(f, i);
    f->inputs = -1;
    f->replay = replay;
    f->spoiled = true;
}

int steps_find(const struct marks *m, struct trace *t, int first, struct seen_step *ret, int most)
{
    struct finding f = {m, t, ret, most, .iteration = first - 1, .replay = -1, .inputs = -1};
    bool updated = true;
    for (int64_t i = 0; i < t->activities; i++) {
        struct activity *x = &t->activity[i];
        int node, given = x->mark - m->marks;
        if (given >= 0) {
            x->mark = -1;
            if (x->replay < 0) see_inputs(&f, i, given);
        } else if (x->mark >= 0) {
            bool update = mark_kind(m, x->mark, &node) == GRAPH_UPDATE;
            if (!update && updated) begin_step(&f, i);
            f.inputs = -1;
            updated = update;
        } else if (x->unmatched) {
            see_unmatched(&f, i);
        }
        if (f.inputs < 0 && x->end_ns > f.busy_ns) f.busy_ns = x->end_ns;
    }
    return f.steps;
}
