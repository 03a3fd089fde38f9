#include "lab/formula_run.h"

#include "base/free_memory.h"
#include "base/interrupt.h"
#include "check/reference.h"
#include "lab/ceiling.h"
#include "lab/formula_exact.h"
#include "lab/memory_check.h"
#include "lab/trial.h"
#include "measure/stopwatch.h"
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LEAST = 5, WARMUP = 2, SETS = TRIAL_SETS, POISON = 0xff, ELEMENTS = 40 };
static const int64_t odd_sizes[] = {1, 33, 1237, 2053}, largest_odd = 2053;
static const double DEVICE_SAMPLE_MS = 2; /* launching a captured graph takes some microseconds */
static const double CHECKED = 0.2;        /* share of the progress bar for checks */

struct trial;

/* A variant of a pass that is timed, or the copy (variant = -1). */
struct timed_variant {
    struct trial *t;
    int pass, variant;
    struct stopwatch watch;
};

/* The run at one size: a graph for each pass and variant, and plans of all graphs for each set of
 * tensors. */
struct trial {
    const struct formula_options *o;
    struct formula_uses uses;
    int passes;
    int64_t n;
    int operators; /* number of kernels of the separate variant of the last pass */
    struct target target;
    void *context;
    struct graph graph[FORMULA_PASSES][FORMULA_VARIANTS];
    struct plan *plan[FORMULA_PASSES][FORMULA_VARIANTS]; /* plan[pass][variant][s] is of set s */
    int plans[FORMULA_PASSES][FORMULA_VARIANTS];
    int sets;
    struct storage_blocks storage[SETS];
    int64_t copied[FORMULA_PASSES]; /* bytes that the copy copies */
    void *from[SETS], *to[SETS];    /* buffers of the copy */
    int64_t calls;                  /* number of calls so far; on a GPU only captured calls */
    struct timed_variant timed[FORMULA_PASSES * (FORMULA_VARIANTS + 1)];
    struct arena arena;
};

const char *formula_variant_name(enum formula_variant v)
{
    return v == FORMULA_FUSED ? "fused" : "separate";
}

const char *formula_pass_name(enum formula_pass p)
{
    return p == FORMULA_BOTH ? "forward + backward" : "forward";
}

static void show(const struct formula_options *o, double share, const char *what)
{
    if (o->each) o->each(o->user, share, what);
}

/* --- graphs and plans ------------------------------------------------------------------------- */

static enum status make_graphs(struct trial *t)
{
    for (int p = 0; p < t->passes; p++)
        for (int v = 0; v < FORMULA_VARIANTS; v++) {
            const struct formula_shape s = {.dtype = t->o->dtype,
                                            .n = t->n,
                                            .fused = v == FORMULA_FUSED,
                                            .gradient = p == FORMULA_BOTH};
            TRY(formula_graph(t->o->formula, t->o->values, &s, &t->graph[p][v], &t->arena));
        }
    return ST_OK;
}

static enum status make_plan(struct trial *t, int p, int v)
{
    struct plan *plan = &t->plan[p][v][t->plans[p][v]];
    TRY(plan_build(plan, &t->graph[p][v], &t->target, NULL, &t->arena));
    t->plans[p][v]++;
    return ST_OK;
}

/* Makes plans of all graphs for `sets` sets of tensors. */
static enum status make_plans(struct trial *t, int sets)
{
    t->sets = sets;
    for (int p = 0; p < t->passes; p++)
        for (int v = 0; v < FORMULA_VARIANTS; v++) {
            t->plan[p][v] = ARENA_NEW(&t->arena, struct plan, sets);
            for (int s = 0; s < sets; s++) TRY(make_plan(t, p, v));
        }
    t->operators = plan_kernels(&t->plan[t->passes - 1][FORMULA_SEPARATE][0]);
    return ST_OK;
}

static struct storage_blocks blocks_of(const struct trial *t, int set)
{
    struct storage_blocks s = {.backend = t->o->device.backend, .context = t->context};
    for (int p = 0; p < t->passes; p++)
        for (int v = 0; v < FORMULA_VARIANTS; v++) storage_reserve(&s, &t->plan[p][v][set]);
    return s;
}

static enum status open_set(struct trial *t, int set)
{
    t->storage[set] = blocks_of(t, set);
    TRY(storage_alloc(&t->storage[set]));
    for (int p = 0; p < t->passes; p++)
        for (int v = 0; v < FORMULA_VARIANTS; v++)
            TRY(plan_bind(&t->plan[p][v][set], &t->storage[set]));
    return ST_OK;
}

/* --- tensors ---------------------------------------------------------------------------------- */

/* Fills one tensor of all sets with its points, repeated. */
static enum status fill_tensor(struct trial *t, const char *name, const void *points, int64_t n)
{
    struct arena scratch = {0};
    int64_t size = dtype_size(t->o->dtype), bytes = t->n * size;
    const struct graph *g = &t->graph[t->passes - 1][FORMULA_SEPARATE];
    value leaf = graph_find_leaf(g, STORAGE_WEIGHTS, name);
    enum status st = ST_OK;
    if (!leaf.i) return ST_OK;
    char *all = arena_alloc(&scratch, bytes);
    for (int64_t at = 0; at < t->n; at += n)
        memcpy(all + at * size, points, (size_t)(min_i64(n, t->n - at) * size));
    for (int s = 0; s < t->sets && st == ST_OK; s++) {
        void *to = plan_address(&t->plan[t->passes - 1][FORMULA_SEPARATE][s], leaf);
        st = t->o->device.backend->memory.upload(t->context, to, all, bytes);
    }
    if (st == ST_OK) st = t->o->device.backend->stream.sync(t->context);
    arena_release(&scratch);
    return st;
}

static enum status fill_tensors(struct trial *t, const struct formula_exact *e)
{
    for (int i = 0; i < FORMULA_TENSORS; i++)
        TRY(fill_tensor(t, formula_tensor_name(i, false), e->in[i], e->points));
    return fill_tensor(t, "df", e->in[FORMULA_TENSORS], e->points);
}

/* --- open and close --------------------------------------------------------------------------- */

/* The number of tensors that the fused backward pass reads. */
static int read_backward(const struct trial *t)
{
    const struct graph *g = &t->graph[FORMULA_BOTH][FORMULA_FUSED];
    int reads = 0;
    for (int i = 0; i < FORMULA_TENSORS; i++) {
        value leaf = graph_find_leaf(g, STORAGE_WEIGHTS, formula_tensor_name(i, false));
        bool any = false;
        for (int id = 0; id < g->nodes && leaf.i; id++)
            for (int k = 0; k < g->node[id].n_in; k++)
                any |= g->node[id].phase == PHASE_BACKWARD && g->node[id].in[k].i == leaf.i;
        reads += any;
    }
    return reads;
}

/* The number of gradients that the backward pass writes. A gradient may be df itself and is then
 * not written, such as dz of x + z. */
static int written_backward(const struct trial *t)
{
    const struct graph *g = &t->graph[FORMULA_BOTH][FORMULA_FUSED];
    int writes = 0;
    for (int i = 0; i < FORMULA_TENSORS; i++) {
        value d = graph_find_output(g, formula_tensor_name(i, true));
        writes += d.i && graph_producer(g, d)->op != OP_LEAF;
    }
    return writes;
}

/* Bytes per element that a pass must read and write: its tensors, df and the results. */
static double useful_bytes(const struct trial *t, int pass)
{
    int tensors = __builtin_popcount(t->uses.tensors) + 1;
    if (pass == FORMULA_BOTH && written_backward(t))
        tensors += 1 + read_backward(t) + written_backward(t);
    return (double)(tensors * dtype_size(t->o->dtype));
}

/* The number of sets that together exceed twice the last cache, at most SETS; *ret_cold is false if
 * SETS sets do not suffice or the cache is unknown. */
static int choose_sets(const struct trial *t, bool *ret_cold)
{
    struct device_facts f;
    const struct device *d = &t->o->device;
    int64_t bytes = (int64_t)useful_bytes(t, FORMULA_FORWARD) * t->n, sets = 1;
    *ret_cold = false;
    if (d->backend->devices.describe(d->number, &f) != ST_OK) return 1;
    sets = 1 + 2 * f.cache_bytes / bytes;
    *ret_cold = f.cache_bytes > 0 && sets <= SETS;
    return (int)min_i64(sets, SETS);
}

/* "4096 elements" */
static const char *elements(int64_t n, char text[ELEMENTS])
{
    snprintf(text, ELEMENTS, "%lld element%s", (long long)n, n == 1 ? "" : "s");
    return text;
}

/* Fails if the memory does not suffice for the sets and, on the host, for a tensor and the
 * results. */
static enum status check_memory(const struct trial *t)
{
    const struct device *d = &t->o->device;
    struct storage_blocks s = blocks_of(t, 0);
    double device = 2 * (double)t->copied[t->passes - 1], host = 24 * (double)t->n;
    for (int i = 0; i < STORAGE_COUNT; i++) device += (double)s.bytes[i];
    device *= t->sets;
    char text[ELEMENTS];
    const char *what = elements(t->n, text);
    if (!d->backend->host_memory) {
        TRY(memory_check(what, "the GPU's memory", device,
                         d->backend->devices.free_memory(d->number)));
        device = 0;
    }
    return memory_check(what, "memory", host + device, free_memory_bytes());
}

static enum status open_copy(struct trial *t)
{
    const struct backend *b = t->o->device.backend;
    int64_t bytes = t->copied[t->passes - 1];
    for (int s = 0; s < t->sets && bytes; s++) {
        TRY(b->memory.alloc(t->context, bytes, &t->from[s]));
        TRY(b->memory.alloc(t->context, bytes, &t->to[s]));
        TRY(b->memory.fill(t->context, t->from[s], (uint8_t)(s + 1), bytes));
    }
    return ST_OK;
}

/* Opens a trial. With `timed` it has as many sets as the timing needs, and buffers for the copy;
 * else it has one set. */
static enum status open_trial(struct trial *t, const struct formula_options *o,
                              const struct formula_uses *uses, int64_t n, bool timed,
                              bool *ret_cold)
{
    *t = (struct trial){.o = o, .uses = *uses, .passes = uses->slopes ? 2 : 1, .n = n};
    TRY(backend_target(o->device.backend, o->device.number, &t->target));
    TRY(o->device.backend->open(o->device.number, &t->context));
    TRY(make_graphs(t));
    TRY(make_plans(t, timed ? choose_sets(t, ret_cold) : 1));
    for (int p = 0; timed && p < t->passes; p++)
        t->copied[p] = (int64_t)(useful_bytes(t, p) * (double)n / 2);
    TRY(check_memory(t));
    for (int s = 0; s < t->sets; s++) TRY(open_set(t, s));
    return open_copy(t);
}

static void close_trial(struct trial *t)
{
    const struct backend *b = t->o->device.backend;
    for (int i = 0; i < COUNT_OF(t->timed); i++) stopwatch_release(&t->timed[i].watch);
    for (int p = 0; p < t->passes; p++)
        for (int v = 0; v < FORMULA_VARIANTS; v++)
            for (int s = 0; s < t->plans[p][v]; s++) plan_release(&t->plan[p][v][s]);
    for (int s = 0; s < t->sets; s++) {
        if (t->storage[s].backend) storage_free(&t->storage[s]);
        if (t->from[s]) b->memory.free(t->context, t->from[s]);
        if (t->to[s]) b->memory.free(t->context, t->to[s]);
    }
    if (t->context) b->close(t->context);
    arena_release(&t->arena);
}

/* --- checks ----------------------------------------------------------------------------------- */

static enum status read_output(const struct trial *t, const struct plan *p, const char *name,
                               double *ret, struct arena *scratch)
{
    int64_t bytes = t->n * dtype_size(t->o->dtype);
    void *y = arena_alloc(scratch, bytes);
    TRY(plan_read(p, name, 0, y, bytes));
    return reference_convert(ret, DT_F64, y, t->o->dtype, t->n);
}

static void judge_output(const struct trial *t, const struct formula_exact *e, int output,
                         enum formula_variant v, const double *y, struct formula_run *ret,
                         struct formula_result *x, struct arena *a)
{
    struct formula_judged j = formula_judge(e, output, v, t->operators, y, t->n);
    const char *name = output ? formula_tensor_name(output - 1, true) : "f";
    if (!x->wrong && j.error >= x->error) x->error = j.error, x->allowed = j.allowed;
    ret->unjudged = fmax(ret->unjudged, j.unjudged);
    char text[ELEMENTS];
    if (j.error <= j.allowed || x->wrong) return;
    x->error = j.error;
    x->allowed = j.allowed;
    x->wrong = arena_printf(a,
                            "wrong at %s: error %.2g of %s, at most %.2g allowed; "
                            "element %lld is %.6g instead of %.6g",
                            elements(t->n, text), j.error, name, j.allowed, (long long)j.worst,
                            y[j.worst], e->out[output].x[j.worst % e->points]);
    ret->wrong++;
}

/* Fills the arena with NaN, runs one plan and checks all its results. */
static enum status check_plan(const struct trial *t, const struct formula_exact *e, int pass,
                              int variant, int set, struct formula_run *ret, struct arena *a)
{
    const struct backend *b = t->o->device.backend;
    struct plan *p = &t->plan[pass][variant][set];
    const struct storage_blocks *s = &t->storage[set];
    struct arena scratch = {0};
    double *y = ARENA_NEW(&scratch, double, t->n);
    enum status st = ST_OK;
    if (s->base[STORAGE_ARENA])
        TRY_OUT(st, b->memory.fill(t->context, s->base[STORAGE_ARENA], POISON,
                                   s->bytes[STORAGE_ARENA]));
    TRY_OUT(st, plan_run(p, NULL));
    for (int k = 0; k < FORMULA_OUTPUTS; k++) {
        const char *name = k ? formula_tensor_name(k - 1, true) : "f";
        if (!graph_find_output(p->graph, name).i) continue;
        TRY_OUT(st, read_output(t, p, name, y, &scratch));
        judge_output(t, e, k, (enum formula_variant)variant, y, ret, &ret->result[pass][variant],
                     a);
    }
out:
    arena_release(&scratch);
    return st;
}

/* Checks all plans of a set. With `stops`, Ctrl-C ends the checks. */
static enum status check_all(const struct trial *t, const struct formula_exact *e, int set,
                             bool stops, struct formula_run *ret, struct arena *a)
{
    for (int p = 0; p < t->passes; p++)
        for (int v = 0; v < FORMULA_VARIANTS; v++) {
            if (stops && interrupt_noted()) return fail(ST_INTERRUPTED, "interrupted");
            enum status st = check_plan(t, e, p, v, set, ret, a);
            if (st != ST_OK)
                return fail_in(st, "%s, %s", formula_variant_name((enum formula_variant)v),
                               formula_pass_name((enum formula_pass)p));
        }
    return ST_OK;
}

static enum status check_odd(const struct formula_options *o, const struct formula_exact *e,
                             struct formula_run *ret, struct arena *a)
{
    for (int i = 0; i < COUNT_OF(odd_sizes); i++) {
        struct trial t;
        bool cold;
        show(o, CHECKED * i / COUNT_OF(odd_sizes), "checks");
        enum status st = open_trial(&t, o, &ret->uses, odd_sizes[i], false, &cold);
        if (st == ST_OK) st = fill_tensors(&t, e);
        if (st == ST_OK) st = check_all(&t, e, 0, true, ret, a);
        close_trial(&t);
        TRY(st);
    }
    return ST_OK;
}

/* --- times ------------------------------------------------------------------------------------ */

/* Starts a call on the next set. All contenders share one counter of sets, so a call never finds
 * the tensors of the call before it in a cache, even if another contender made that call. */
static enum status start(void *user, int)
{
    const struct timed_variant *v = user;
    struct trial *t = v->t;
    int set = (int)(t->calls++ % t->sets);
    if (v->variant >= 0) return plan_run(&t->plan[v->pass][v->variant][set], NULL);
    return ceiling_copy(&t->o->device, t->context, t->to[set], t->from[set], t->copied[v->pass]);
}

/* Replaying a captured graph uses the same sets each time, so the graph must contain all sets. */
static enum status sample(void *user, int calls, double *ret_ms)
{
    struct timed_variant *v = user;
    int sets = v->t->sets;
    bool records = v->t->o->device.backend->recording;
    return stopwatch_time(&v->watch, records && calls < sets ? sets : calls, ret_ms);
}

static void show_times(void *user, double done_ms, double expected_ms)
{
    double share = expected_ms > 0 && done_ms < expected_ms ? done_ms / expected_ms : 0;
    show(user, CHECKED + (1 - CHECKED) * share, "timing all variants alternately");
}

static struct contender contender_of(struct trial *t, int at, int pass, int variant)
{
    struct timed_variant *v = &t->timed[at];
    int all = t->passes * (FORMULA_VARIANTS + 1);
    *v = (struct timed_variant){.t = t, .pass = pass, .variant = variant};
    v->watch = (struct stopwatch){
        .backend = t->o->device.backend, .context = t->context, .start = start, .user = v};
    return (struct contender){
        .sample = sample, .user = v, .parts = 1, .budget_ms = t->o->limit_ms / all};
}

static enum status time_all(struct trial *t, struct formula_run *ret, struct arena *a)
{
    const struct formula_options *o = t->o;
    struct contender c[FORMULA_PASSES * (FORMULA_VARIANTS + 1)], *to[COUNT_OF(c)];
    int n = 0;
    for (int p = 0; p < t->passes; p++)
        for (int v = -1; v < FORMULA_VARIANTS; v++) {
            if (v >= 0 && ret->result[p][v].wrong) continue;
            c[n] = contender_of(t, n, p, v);
            to[n++] = v < 0 ? &ret->copy[p] : &ret->result[p][v].time;
        }
    const struct rounds rounds = {.most = o->samples,
                                  .least = o->samples < LEAST ? o->samples : LEAST,
                                  .warmup = WARMUP,
                                  .cold = 1,
                                  .keep = a,
                                  .go_on = o->go_on,
                                  .sample_ms = o->device.backend->recording ? DEVICE_SAMPLE_MS : 0,
                                  .each = show_times,
                                  .user = (void *)o};
    TRY(rounds_run(&rounds, c, n));
    for (int i = 0; i < n; i++) *to[i] = c[i];
    return ST_OK;
}

static void conclude(const struct trial *t, struct formula_run *ret, struct arena *a)
{
    for (int p = 0; p < t->passes; p++) {
        struct formula_result *x = ret->result[p];
        if (x[FORMULA_SEPARATE].wrong || x[FORMULA_FUSED].wrong) continue;
        struct timed before = rounds_timed(&x[FORMULA_SEPARATE].time, a);
        struct timed now = rounds_timed(&x[FORMULA_FUSED].time, a);
        x[FORMULA_FUSED].beside = judge(&before, &now);
    }
}

static enum status run_size(struct trial *t, const struct formula_exact *e, struct formula_run *ret,
                            struct arena *a)
{
    const struct formula_options *o = ret->options;
    TRY(open_trial(t, o, &ret->uses, o->n, true, &ret->cold));
    ret->sets = t->sets;
    for (int p = 0; p < t->passes; p++) {
        ret->useful[p] = useful_bytes(t, p);
        for (int v = 0; v < FORMULA_VARIANTS; v++) {
            ret->result[p][v].kernels = plan_kernels(&t->plan[p][v][0]);
            ret->result[p][v].moved = plan_cost(&t->plan[p][v][0]).bytes / (double)o->n;
        }
    }
    TRY(fill_tensors(t, e));
    ret->unjudged = 0; /* forgets the odd sizes, which do not count */
    TRY(check_all(t, e, 0, true, ret, a));
    TRY(time_all(t, ret, a));
    TRY(check_all(t, e, t->sets - 1, false, ret, a));
    conclude(t, ret, a);
    return ST_OK;
}

enum status formula_run(const struct formula_options *o, struct formula_run *ret, struct arena *a)
{
    struct formula_exact e;
    struct arena exact = {0};
    *ret = (struct formula_run){.options = o};
    TRY(formula_check(o->formula, o->values, &ret->uses));
    ret->passes = ret->uses.slopes ? 2 : 1;
    show(o, 0, "the results in double precision");
    enum status st = formula_exact(o, &ret->uses, max_i64(o->n, largest_odd), &e, &exact);
    if (st == ST_OK) st = check_odd(o, &e, ret, a);
    if (st == ST_OK) {
        struct trial *t = ARENA_NEW(&exact, struct trial, 1);
        st = run_size(t, &e, ret, a);
        close_trial(t);
    }
    arena_release(&exact);
    return st;
}
