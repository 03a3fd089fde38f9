/* Hardware counters of one further step, whose kernels are launched one by one. Counters have no
 * marks, so a trace of such a step is made first: its kernels are those that are counted, in the
 * same order. There is one rank, or ranks share the process. */
#include "profile/collect.h"

#include "backend/backend.h"
#include "backend/communicator.h"
#include "base/str.h"

#include <math.h>

static void mark_before(void *user, const struct plan *p, int node)
{
    p->backend->trace->mark(p->context, mark_of(user, p, node));
}

static enum status mark_after(void *, const struct plan *p, int)
{
    p->backend->trace->mark(p->context, -1);
    return ST_OK;
}

/* Without `recorded` no graph is replayed. */
static enum status step(struct random_step *n, int iteration, struct marks *marks)
{
    const struct plan_hooks hooks = {.user = marks, .before = mark_before, .after = mark_after};
    return random_step_run(n, iteration, &hooks, NULL);
}

static enum status list_kernels(struct random_step *n, int iteration, struct collected *c,
                                struct arena *a)
{
    const struct engine *e = n->engine;
    struct trace t;
    TRY(e->backend->trace->begin(e->context));
    enum status st = step(n, iteration, &c->marks);
    enum status ended = e->backend->trace->end(e->context, &t, a);
    TRY(st);
    TRY(ended);
    c->counted = ARENA_NEW(a, struct counted_kernel, t.activities);
    for (int64_t i = 0; i < t.activities; i++)
        if (t.activity[i].kind == ACTIVITY_KERNEL)
            c->counted[c->counted_kernels++] =
                (struct counted_kernel){.mark = t.activity[i].mark, .name = t.activity[i].name};
    return ST_OK;
}

static enum status count_kernels(struct random_step *n, int iteration, struct collected *c,
                                 struct arena *a)
{
    enum { SPARE = 64 }; /* kernels that the trace lost are counted too, and reported */
    const struct engine *e = n->engine;
    int64_t most = c->counted_kernels + SPARE, kernels = 0;
    struct kernel_counters *counters = ARENA_NEW(a, struct kernel_counters, most);
    TRY(e->backend->counters->begin(e->context, COUNTERS_OF_TIME, most));
    enum status st = step(n, iteration, &c->marks);
    enum status ended = e->backend->counters->end(e->context, counters, &kernels);
    TRY(st);
    TRY(ended);
    if (kernels != c->counted_kernels)
        return fail(ST_UNSUPPORTED,
                    "%lld kernels were counted where %lld were traced, so it is not known whose "
                    "counters they are; run it again",
                    (long long)kernels, (long long)c->counted_kernels);
    for (int64_t i = 0; i < kernels; i++) c->counted[i].counters = counters[i];
    return ST_OK;
}

void counters_collect(struct random_step *n, int iteration, struct collected *c, struct profile *p,
                      struct arena *a)
{
    const struct backend *b = n->engine->backend;
    n->lookahead = false;
    n->tell = NULL;
    c->counted_kernels = 0;
    if (!b->counters) {
        p->counters_why = arena_printf(
            a, "the %s backend has none; --counters needs an NVIDIA GPU (--device=cuda)", b->name);
        return;
    }
    if (!communicator_in_process(n->engine->communicator)) {
        p->counters_why = "kernels of NCCL run at the same time as others, which a counted kernel "
                          "must not: leave out --ranks";
        return;
    }
    if (p->by != PROFILE_TRACE) {
        p->counters_why = arena_printf(
            a, "whose they are is known only with a device trace, and there is none: %s",
            p->why ? p->why : "events were requested");
        return;
    }
    enum status st = random_step_finish(n);
    if (st == ST_OK) st = list_kernels(n, iteration, c, a);
    if (st == ST_OK) st = count_kernels(n, iteration + 1, c, a);
    if (st == ST_OK) return;
    p->counters_why = arena_strdup(a, fail_message());
    c->counted_kernels = 0;
}

/* --- rows ------------------------------------------------------------------------------------- */

static struct profile_row *row_of(const struct collected *c, struct profile *p,
                                  const struct counted_kernel *k)
{
    if (k->mark < 0) return NULL;
    int node;
    enum graph_kind kind = mark_kind(&c->marks, k->mark, &node);
    for (struct profile_row *r = p->row; r < p->row + p->rows; r++)
        if (r->node == node && r->kind == kind && str_same(r->device_kernel, k->name)) return r;
    return NULL;
}

#define ADD(from, share, ...) r->share += from->share;
#define DIVIDE(n, share, ...) r->share /= n;

static void add_counters(struct profile_row *r, const struct kernel_counters *x)
{
    r->counted++;
    r->dram_read += x->dram_read;
    r->dram_written += x->dram_written;
    COUNTER_SHARES(ADD, x)
}

/* Sums become means; NAN: there are none. */
static void divide(struct profile_row *r)
{
    double n = r->counted ? r->counted : NAN;
    r->dram_read /= n;
    r->dram_written /= n;
    r->dram_of_node /= n;
    COUNTER_SHARES(DIVIDE, n)
}

/* The bytes of all kernels of a node, for the row that has its cost. */
static void find_work(struct profile *p, struct profile_row *r)
{
    if (!r->counted || !(r->bytes > 0)) return;
    for (const struct profile_row *x = p->row; x < p->row + p->rows; x++)
        if (x->node == r->node && x->kind == r->kind) r->dram_of_node += profile_dram(x);
}

double profile_dram(const struct profile_row *r)
{
    return r->dram_read + r->dram_written;
}

void counters_join(const struct collected *c, struct profile *p)
{
    for (int64_t i = 0; i < c->counted_kernels; i++) {
        struct profile_row *r = row_of(c, p, &c->counted[i]);
        if (!r) continue;
        p->counted++;
        add_counters(r, &c->counted[i].counters);
    }
    for (struct profile_row *r = p->row; r < p->row + p->rows; r++) find_work(p, r);
    for (struct profile_row *r = p->row; r < p->row + p->rows; r++) divide(r);
}
