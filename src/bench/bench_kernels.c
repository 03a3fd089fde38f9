#include "bench/bench_kernels.h"

#include "backend/backend.h"
#include "base/clock.h"
#include "bench/call.h"
#include "measure/random_step.h"
#include "measure/rounds.h"
#include "measure/stopwatch.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST = 3, WARMUP = 3, ROWS_MOST = 16, COPIES_MOST = 64 };
static const double DEVICE_SAMPLE_MS = 2; /* long compared with the launch of a captured graph */

/* A reference row, which is a plain loop on one thread, is not timed if it would take too long. */
static const double REFERENCE_FLOPS = 5e8, REFERENCE_MS_MOST = 2000;

struct session {
    struct engine *engine;
    const struct bench_kernels_options *o;
    struct bench_kernels *k;
    enum graph_kind kind; /* the plan that is running */
    int done;             /* rows done so far */
    int64_t cache_bytes;  /* size of a GPU's L2, in which a call must not find its inputs; CPU: 0 */
    enum status st;
};

/* The copies of one call, each with its own memory. */
struct copied {
    struct kernel_call call[COPIES_MOST];
    int copies;
};

struct running {
    const struct copied *copied;
    const struct kernel *kernel;
    struct kernel_call call; /* with the addresses of a copy */
    bool prepared;
    struct stopwatch watch;
};

static enum status allocate(struct session *s, int64_t bytes, void **ret)
{
    return s->engine->backend->memory.alloc(s->engine->context, bytes, ret);
}

static void release(struct session *s, void *memory)
{
    if (memory) s->engine->backend->memory.free(s->engine->context, memory);
}

static enum status copy_input(struct session *s, const void *from, int64_t bytes, void **ret)
{
    const struct backend *b = s->engine->backend;
    TRY(allocate(s, bytes, ret));
    return b->memory.copy(s->engine->context, *ret, from, bytes);
}

/* Copies a call with its inputs; an output that is an input written in place stays that input. */
static enum status copy_call(struct session *s, const struct bench_call *c,
                             const struct kernel_call *from, struct kernel_call *ret)
{
    *ret = *from;
    ret->scratch = ret->state = NULL;
    for (int i = 0; i < ret->n_in; i++) ret->in[i] = NULL;
    for (int i = 0; i < ret->n_out; i++) ret->out[i] = NULL;
    for (int i = 0; i < ret->n_in; i++)
        TRY(copy_input(s, from->in[i], type_bytes(&from->in_type[i]), &ret->in[i]));
    for (int i = 0; i < ret->n_out; i++) {
        if (i < op_writes(c->op))
            ret->out[i] = ret->in[i];
        else
            TRY(allocate(s, type_bytes(&from->out_type[i]), &ret->out[i]));
    }
    return ST_OK;
}

static void free_call(struct session *s, const struct bench_call *c, struct kernel_call *call)
{
    for (int i = op_writes(c->op); i < call->n_out; i++) release(s, call->out[i]);
    for (int i = 0; i < call->n_in; i++) release(s, call->in[i]);
}

/* The number of copies of a call that together exceed twice the cache. */
static int copies_of(const struct session *s, const struct kernel_call *c)
{
    int64_t bytes = 1;
    for (int i = 0; i < c->n_in; i++) bytes += type_bytes(&c->in_type[i]);
    for (int i = 0; i < c->n_out; i++) bytes += type_bytes(&c->out_type[i]);
    int64_t copies = 1 + 2 * s->cache_bytes / bytes;
    return copies < COPIES_MOST ? (int)copies : COPIES_MOST;
}

static enum status open_row(struct session *s, const struct kernel *k, const struct copied *copied,
                            struct running *r)
{
    *r = (struct running){.copied = copied, .kernel = k, .call = copied->call[0]};
    if (k->scratch_bytes && k->scratch_bytes(k, &r->call) > 0)
        TRY(allocate(s, k->scratch_bytes(k, &r->call), &r->call.scratch));
    if (k->prepare) TRY(k->prepare(k, &r->call));
    r->prepared = true;
    return ST_OK;
}

static void close_row(struct session *s, struct running *r)
{
    stopwatch_release(&r->watch);
    if (r->prepared && r->kernel->release) r->kernel->release(&r->call);
    release(s, r->call.scratch);
}

static enum status start(void *user, int i)
{
    struct running *r = user;
    const struct kernel_call *from = &r->copied->call[i % r->copied->copies];
    memcpy(r->call.in, from->in, sizeof r->call.in);
    memcpy(r->call.out, from->out, sizeof r->call.out);
    return r->kernel->run(&r->call);
}

static enum status sample(void *user, int calls, double *ret_ms)
{
    return stopwatch_time(&((struct running *)user)->watch, calls, ret_ms);
}

static const char *reason_to_leave_out(const struct bench_call *c, const struct bench_row *row)
{
    double ms = c->cost.flops / REFERENCE_FLOPS * 1e3;
    bool reference = !strcmp(row->kernel->variant, "ref");
    return reference && !row->taken && ms > REFERENCE_MS_MOST ? "would take too long" : NULL;
}

static void rate_row(const struct bench_call *c, const struct machine *m, struct bench_row *row)
{
    double seconds = row->ms.median * 1e-3;
    if (!(seconds > 0)) return;
    /* On a GPU the runs cycle through copies of the call, so no run finds its data in L2. */
    struct floor f = machine_floor(m, c->precision, c->cost.flops, c->cost.bytes, NAN);
    row->flops = c->cost.flops / seconds;
    row->bytes = c->cost.bytes / seconds;
    row->by_bytes = f.memory_ms > f.compute_ms;
    row->share = f.ms / row->ms.median;
}

/* The rounds of all rows. On a GPU the first run compiles kernels, and later runs are captured. */
static struct rounds rounds_of(const struct session *s)
{
    bool host = s->engine->backend->host_memory;
    struct rounds r = {.most = s->o->samples, .least = LEAST, .warmup = WARMUP};
    if (r.least > r.most) r.least = r.most;
    if (!host) r.cold = 1, r.sample_ms = DEVICE_SAMPLE_MS;
    return r;
}

static enum status time_rows(struct session *s, struct bench_call *c, const struct copied *copied)
{
    struct running running[ROWS_MOST];
    struct contender contender[ROWS_MOST];
    int row_of[ROWS_MOST], n = 0, opened = 0;
    enum status st = ST_OK;
    struct rounds rounds = rounds_of(s);
    struct arena kept = {0};
    struct verdict order[ROWS_MOST];
    int fastest;
    rounds.keep = &kept;
    rounds.go_on = s->o->go_on;
    for (int i = 0; i < c->rows && n < ROWS_MOST; i++) {
        c->row[i].left_out = reason_to_leave_out(c, &c->row[i]);
        if (c->row[i].left_out) continue;
        opened = n + 1;
        TRY_OUT(st, open_row(s, c->row[i].kernel, copied, &running[n]));
        running[n].watch = (struct stopwatch){.backend = s->engine->backend,
                                              .context = s->engine->context,
                                              .start = start,
                                              .user = &running[n]};
        contender[n] = (struct contender){.sample = sample, .user = &running[n], .parts = 1};
        contender[n].budget_ms = s->o->limit_ms / s->k->rows;
        row_of[n++] = i;
    }
    TRY_OUT(st, rounds_run(&rounds, contender, n));
    rounds_order(contender, n, order, &fastest);
    for (int i = 0; i < n; i++) {
        c->row[row_of[i]].ms = contender[i].total;
        c->row[row_of[i]].order = order[i];
        c->row[row_of[i]].fastest = n > 1 && i == fastest;
        rate_row(c, s->o->machine, &c->row[row_of[i]]);
    }
out:
    for (int i = 0; i < opened; i++) close_row(s, &running[i]);
    arena_release(&kept);
    return st;
}

static enum status time_call(struct session *s, struct bench_call *c)
{
    const struct step *step = &s->engine->program.plan[c->kind].step[c->step];
    struct copied copied = {0};
    int wanted = copies_of(s, &step->call);
    enum status st = ST_OK;
    if (s->o->each) s->o->each(s->o->user, s->done, s->k->rows, c);
    while (st == ST_OK && copied.copies < wanted)
        st = copy_call(s, c, &step->call, &copied.call[copied.copies++]);
    if (st == ST_OK) st = time_rows(s, c, &copied);
    for (int i = 0; i < copied.copies; i++) free_call(s, c, &copied.call[i]);
    s->done += c->rows;
    if (s->o->each) s->o->each(s->o->user, s->done, s->k->rows, c);
    if (st != ST_OK) return fail_in(st, "%s %s", op_def(c->op)->name, c->shape);
    for (int i = 0; i < c->rows; i++)
        if (c->row[i].taken) c->ms_per_step = c->row[i].ms.median * (double)c->per_step;
    return ST_OK;
}

/* The hook that is called before each step of the plan: the step's inputs then have the values of
 * training. */
static void before(void *user, const struct plan *, int step)
{
    struct session *s = user;
    for (int i = 0; i < s->k->calls && s->st == ST_OK; i++)
        if (s->k->call[i].kind == s->kind && s->k->call[i].step == step)
            s->st = time_call(s, &s->k->call[i]);
}

static enum status after(void *user, const struct plan *, int)
{
    return ((struct session *)user)->st;
}

static enum status sample_matmuls(void *user, int calls, double *ret_ms)
{
    struct session *s = user;
    int64_t start = clock_ns();
    for (int i = 0; i < calls; i++)
        TRY(matmuls_run(&s->engine->program.plan[GRAPH_MICRO], &s->k->matmuls));
    ret_ms[0] = clock_ms(start, clock_ns()) / calls;
    return ST_OK;
}

static enum status time_matmuls(struct session *s)
{
    struct contender c = {.sample = sample_matmuls, .user = s, .parts = 1, .one_by_one = true};
    struct rounds rounds = rounds_of(s);
    c.budget_ms = s->o->limit_ms / 4;
    TRY(rounds_run(&rounds, &c, 1));
    s->k->matmuls_ms = c.total;
    return ST_OK;
}

static int longest_first(const void *a, const void *b)
{
    const struct bench_call *x = a, *y = b;
    if (x->ms_per_step != y->ms_per_step) return x->ms_per_step < y->ms_per_step ? 1 : -1;
    return x->kind != y->kind ? (int)x->kind - (int)y->kind : x->step - y->step;
}

/* Prepares every row once, so that all kernels are compiled together at the first run. */
static enum status prepare_rows(const struct engine *e, const struct bench_kernels *k)
{
    for (int i = 0; i < k->calls; i++) {
        const struct bench_call *c = &k->call[i];
        for (int row = 0; row < c->rows; row++) {
            const struct kernel *kernel = c->row[row].kernel;
            struct kernel_call call = e->program.plan[c->kind].step[c->step].call;
            if (kernel->prepare) TRY(kernel->prepare(kernel, &call));
            if (kernel->release) kernel->release(&call);
        }
    }
    return ST_OK;
}

enum status bench_kernels_run(struct engine *e, const struct bench_kernels_options *o,
                              struct bench_kernels *ret, struct arena *a)
{
    static const enum graph_kind kinds[] = {GRAPH_MICRO, GRAPH_MICRO_MORE, GRAPH_UPDATE};
    struct session s = {.engine = e, .o = o, .k = ret};
    struct plan_hooks hooks = {.user = &s, .before = before, .after = after};
    struct random_step random_step;
    struct device_facts facts;
    bench_calls_find(&e->program, o->op, ret, a);
    if (!ret->calls) return ST_OK;
    if (!e->backend->host_memory) {
        TRY(e->backend->devices.describe(o->machine->device.number, &facts));
        s.cache_bytes = facts.cache_bytes;
        TRY(prepare_rows(e, ret));
    }
    TRY(random_step_init(&random_step, e, a));
    for (int k = 0; k < COUNT_OF(kinds); k++) {
        s.kind = kinds[k];
        if (!e->program.built[s.kind]) continue;
        struct sequence plan;
        sequence_init_plan(&plan, e, s.kind, NULL, a);
        TRY(random_step_feed(&random_step, &plan, 0, k));
        TRY(sequence_start(&plan, &hooks));
    }
    if (o->op == OP_COUNT) TRY(time_matmuls(&s));
    qsort(ret->call, (size_t)ret->calls, sizeof *ret->call, longest_first);
    return ST_OK;
}
