#include "bench/bench_attention.h"

#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/rng.h"
#include "base/str.h"
#include "bench/attention_graph.h"
#include "check/attention_exact.h"
#include "check/reference.h"
#include "engine/gauge.h"
#include "graph/build.h"
#include "measure/rounds.h"
#include "measure/stopwatch.h"
#include "pass/pass.h"
#include "plan/timeline.h"

enum { LEAST = 3, WARMUP = 2, START = 0, TURN, END }; /* events */
enum { GAUGE_MS = 10 };
static const double DEVICE_SAMPLE_MS = 2; /* long compared with the launch of a captured graph */

/* One variant at one length: its graph and plan. All variants share the same memory. */
struct trial {
    struct attention_cell *cell;
    struct graph graph;
    struct plan plan;
    bool planned;
    bool turned; /* the backward pass has begun */
    /* The kernels of the forward and the backward pass, if each pass is a single kernel that can be
     * repeated on the same bytes; else NULL. */
    const struct step *step[2];
    struct stopwatch watch[2];
    struct length *length;
};

/* Inputs on the host. All lengths of a head size share them, because B x T is constant. */
struct stock {
    void *qkv, *dy;
    int64_t qkv_bytes, dy_bytes;
};

struct length {
    const struct attention_options *o;
    const struct stock *stock;
    const struct backend *backend;
    struct target target;
    void *context;
    void *qkv, *dy; /* the inputs of `stock` on the device */
    struct storage_blocks storage;
    struct trial trial[ATTENTION_VARIANTS];
    struct arena arena;
};

/* Sets the shape of a cell except its length and batch. */
static void set_heads(struct attention_cell *c, const struct attention_options *o, int size)
{
    c->D = o->head_size[size];
    c->H = o->heads ? o->heads : o->columns / c->D;
    c->KV = o->kv_heads ? o->kv_heads : c->H;
}

static enum status repeat(void *user, int)
{
    const struct step *s = *(const struct step **)user;
    return s->kernel->run(&s->call);
}

/* Finds the two kernels of flash attention, forward and backward. They do not overwrite their
 * inputs, so each can be repeated. */
static void find_steps(struct length *l, struct trial *t)
{
    int n = 0;
    for (int id = 0; id < t->plan.steps; id++)
        if (t->plan.step[id].kernel && n < 2) t->step[n++] = &t->plan.step[id];
    for (int i = 0; i < 2; i++)
        t->watch[i] = (struct stopwatch){
            .backend = l->backend, .context = l->context, .start = repeat, .user = &t->step[i]};
}

/* Stores the names of the kernel rows that the planner selected, if attention is one operator. */
static void name_kernels(struct trial *t)
{
    for (int id = 0; id < t->plan.steps; id++) {
        enum op op = t->graph.node[id].op;
        if (op == OP_ATTENTION) t->cell->kernel[0] = t->plan.step[id].kernel->variant;
        if (op == OP_ATTENTION_GRAD) t->cell->kernel[1] = t->plan.step[id].kernel->variant;
    }
}

/* Bytes of all values that are live across the start of the backward pass. */
static int64_t kept_bytes(const struct plan *p)
{
    struct arena scratch = {0};
    struct residencies s;
    int turn = plan_backward_start(p);
    int64_t bytes = 0;
    plan_residencies(p, &s, &scratch);
    for (int i = 0; i < s.n; i++)
        if (s.residency[i].first < turn && s.residency[i].last >= turn)
            bytes += s.residency[i].bytes;
    arena_release(&scratch);
    return bytes;
}

static enum status make_plan(struct length *l, struct trial *t)
{
    TRY(attention_graph(t->cell, &t->graph, &l->arena));
    TRY(plan_build(&t->plan, &t->graph, &l->target, NULL, &l->arena));
    t->planned = true;
    t->cell->bytes = t->plan.arena_bytes;
    t->cell->kept = kept_bytes(&t->plan);
    t->cell->kernels = plan_kernels(&t->plan);
    name_kernels(t);
    if (attention_variant_is_flash(t->cell->way) && t->cell->kernels == 2) find_steps(l, t);
    return ST_OK;
}

static enum status make_normals(enum dtype dtype, int64_t n, uint32_t sequence, void **ret_x,
                                int64_t *ret_bytes, struct arena *a)
{
    struct arena scratch = {0};
    float *wide = ARENA_NEW(&scratch, float, n);
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++) wide[i] = rng_normal(1, RNG_TEST, sequence, (uint64_t)i);
    *ret_bytes = n * dtype_size(dtype);
    *ret_x = arena_alloc(a, *ret_bytes);
    enum status st = reference_convert(*ret_x, dtype, wide, DT_F32, n);
    arena_release(&scratch);
    return st;
}

static enum status make_stock(const struct attention_options *o, int size, enum dtype dtype,
                              struct stock *s, struct arena *a)
{
    struct attention_cell c;
    set_heads(&c, o, size);
    TRY(make_normals(dtype, o->tokens * attention_packed_columns(&c), 0, &s->qkv, &s->qkv_bytes,
                     a));
    return make_normals(dtype, o->tokens * c.H * c.D, 1, &s->dy, &s->dy_bytes, a);
}

/* Copies the inputs to the plan's memory before every run, because the plan reuses their bytes. The
 * copy stays within the device. */
static enum status feed(struct trial *t)
{
    const struct length *l = t->length;
    int32_t step = 0;
    void *at = plan_input(&t->plan, "step");
    const struct stock *s = l->stock;
    TRY(l->backend->memory.copy(l->context, plan_input(&t->plan, "qkv"), l->qkv, s->qkv_bytes));
    TRY(l->backend->memory.copy(l->context, plan_input(&t->plan, "dy"), l->dy, s->dy_bytes));
    return at ? l->backend->memory.upload(l->context, at, &step, sizeof step) : ST_OK;
}

static void record_turn(void *user, const struct plan *p, int step)
{
    struct trial *t = user;
    if (t->turned || p->graph->node[step].phase != PHASE_BACKWARD) return;
    t->turned = p->backend->stream.event_record(p->context, TURN) == ST_OK;
}

static enum status sample_pass(void *user, int calls, double *ret_ms)
{
    struct trial *t = user;
    const struct length *l = t->length;
    struct plan_hooks hooks = {.user = t, .before = record_turn};
    BUG_IF(calls != 1, "%d calls", calls);
    TRY(feed(t));
    t->turned = false;
    TRY(l->backend->stream.event_record(l->context, START));
    TRY(plan_run(&t->plan, &hooks));
    TRY(l->backend->stream.event_record(l->context, END));
    TRY(l->backend->stream.sync(l->context));
    TRY(l->backend->stream.event_elapsed(l->context, START, TURN, &ret_ms[0]));
    return l->backend->stream.event_elapsed(l->context, TURN, END, &ret_ms[1]);
}

static enum status sample_kernels(void *user, int calls, double *ret_ms)
{
    struct trial *t = user;
    TRY(feed(t));
    TRY(stopwatch_time(&t->watch[0], calls, &ret_ms[0]));
    return stopwatch_time(&t->watch[1], calls, &ret_ms[1]);
}

static double pairs_of(const struct attention_cell *c)
{
    return (double)c->B * (double)c->T * (double)c->T / (c->causal ? 2 : 1);
}

/* A cell is skipped unless a warm-up run and a timed run fit in the time for its length, or take
 * only a small part of the time of the whole job. Otherwise slow variants would leave no time for
 * the longest lengths. */
static const char *reason_of_time(const struct attention_options *o, double ms, double budget_ms,
                                  struct arena *a)
{
    double all_ms = o->all_ms > 0 ? o->all_ms : o->limit_ms;
    if (ms == 0 || ms * 2 <= budget_ms || ms * 2 <= all_ms / 20) return NULL;
    return arena_printf(a, "would take about %.2g s per run, too long for the total of %.3g s",
                        ms * 1e-3, all_ms * 1e-3);
}

static void conclude(struct trial *t, const struct contender *c)
{
    struct attention_cell *cell = t->cell;
    cell->forward = c->part[0];
    cell->backward = c->part[1];
    cell->both = c->total;
    cell->expected_ms = c->total.median;
    cell->forward_flops = 4 * pairs_of(cell) * (double)(cell->H * cell->D);
    cell->backward_flops = 2.5 * cell->forward_flops;
}

struct report {
    const struct attention_options *o;
    const struct stock *stock;
    double done, all;
    double weight;                     /* of the current shape */
    double share;                      /* fraction of this shape that is done; never decreases */
    const struct attention_cell *cell; /* the first of the shape */
    struct gauge *gauge;               /* telemetry of the device; NULL: not available */
    bool stopped;                      /* Ctrl-C came before all cells had run */
};

static void show(void *user, double done_ms, double expected)
{
    struct report *r = user;
    double share = expected > done_ms ? done_ms / expected : expected > 0;
    if (share > r->share) r->share = share;
    double done = r->done + r->share * r->weight;
    if (r->o->each) r->o->each(r->o->user, done, r->all, r->cell);
}

/* Starts telemetry only with the first sample, because during warm-up the device waits for the
 * compiler. */
static void progress(void *user, double done_ms, double expected)
{
    struct report *r = user;
    if (expected > 0 && r->gauge && r->share == 0) gauge_work(r->gauge, true);
    show(user, done_ms, expected);
}

static void read_clock(struct length *l, struct report *r)
{
    struct device_facts facts;
    struct gauge_summary g = {0};
    bool known = l->backend->devices.describe(l->o->device.number, &facts) == ST_OK;
    double mhz = 0;
    if (r->gauge) {
        gauge_work(r->gauge, false);
        g = gauge_summarize(r->gauge);
        if (g.samples > 0) mhz = g.value[GAUGE_CLOCK].mean;
    }
    for (int w = 0; w < ATTENTION_VARIANTS; w++) {
        struct attention_cell *c = l->trial[w].cell;
        c->clock_sampled = mhz > 0;
        c->clock_mhz = mhz > 0 ? mhz : known ? facts.clock_mhz : 0;
    }
}

static enum status upload_stock(struct length *l)
{
    const struct stock *s = l->stock;
    TRY(l->backend->memory.alloc(l->context, s->qkv_bytes, &l->qkv));
    TRY(l->backend->memory.alloc(l->context, s->dy_bytes, &l->dy));
    TRY(l->backend->memory.upload(l->context, l->qkv, s->qkv, s->qkv_bytes));
    return l->backend->memory.upload(l->context, l->dy, s->dy, s->dy_bytes);
}

/* Computes the errors of each variant (attention_exact.h). */
static enum status check_trials(struct length *l, struct trial **trial, int n)
{
    const struct attention_cell *c = trial[0]->cell;
    struct attention_shape shape = {.dtype = attention_dtype(c->precision),
                                    .B = c->B,
                                    .T = c->T,
                                    .H = c->H,
                                    .KV = c->KV,
                                    .D = c->D,
                                    .causal = c->causal};
    struct attention_exact exact;
    TRY(attention_exact_make(&exact, &shape, l->stock->qkv, l->stock->dy, &l->arena));
    for (int i = 0; i < n; i++) {
        struct attention_cell *to = trial[i]->cell;
        TRY(feed(trial[i]));
        TRY(attention_exact_error(&exact, &trial[i]->plan, &to->error_y, &to->error_dqkv));
    }
    return ST_OK;
}

/* Allocates memory for all running variants and samples them in turn. */
static enum status time_together(struct length *l, struct trial **running, int n, double budget_ms,
                                 struct report *report)
{
    struct contender contender[ATTENTION_VARIANTS];
    struct rounds rounds = {.most = l->o->samples,
                            .least = LEAST,
                            .warmup = WARMUP - 1,
                            .each = progress,
                            .user = report};
    if (rounds.least > rounds.most) rounds.least = rounds.most;
    if (!l->backend->host_memory) rounds.cold = 1, rounds.sample_ms = DEVICE_SAMPLE_MS;
    l->storage = (struct storage_blocks){.backend = l->backend, .context = l->context};
    for (int i = 0; i < n; i++) {
        storage_reserve(&l->storage, &running[i]->plan);
        bool repeats = running[i]->step[1];
        contender[i] = (struct contender){.sample = repeats ? sample_kernels : sample_pass,
                                          .user = running[i],
                                          .parts = 2,
                                          .one_by_one = !repeats};
        contender[i].budget_ms = budget_ms / n;
    }
    TRY(storage_alloc(&l->storage));
    TRY(upload_stock(l));
    for (int i = 0; i < n; i++) TRY(plan_bind(&running[i]->plan, &l->storage));
    struct arena kept = {0};
    struct verdict order[ATTENTION_VARIANTS];
    int fastest;
    rounds.keep = &kept;
    rounds.go_on = l->o->go_on;
    enum status st = rounds_run(&rounds, contender, n);
    if (st == ST_OK) rounds_order(contender, n, order, &fastest);
    arena_release(&kept);
    TRY(st);
    read_clock(l, report);
    for (int i = 0; i < n; i++) {
        conclude(running[i], &contender[i]);
        running[i]->cell->order = order[i];
        running[i]->cell->fastest = n > 1 && i == fastest;
    }
    return l->o->check && n ? check_trials(l, running, n) : ST_OK;
}

static void release_memory(struct length *l)
{
    if (l->qkv) l->backend->memory.free(l->context, l->qkv);
    if (l->dy) l->backend->memory.free(l->context, l->dy);
    l->qkv = l->dy = NULL;
    if (l->storage.backend) storage_free(&l->storage);
    l->storage = (struct storage_blocks){0};
}

/* If memory runs out, drops the variant that needs the most memory and starts over. */
static enum status time_trials(struct length *l, double budget_ms, struct report *report,
                               struct arena *a)
{
    for (;;) {
        struct trial *running[ATTENTION_VARIANTS], *largest = NULL;
        int n = 0;
        for (int w = 0; w < ATTENTION_VARIANTS; w++) {
            struct trial *t = &l->trial[w];
            if (t->cell->reason) continue;
            if (!largest || t->cell->bytes > largest->cell->bytes) largest = t;
            running[n++] = t;
        }
        if (!n) return ST_OK;
        enum status st = time_together(l, running, n, budget_ms, report);
        if (st != ST_MEMORY) return st;
        largest->cell->reason = arena_printf(a, "did not fit: %s", fail_message());
        for (int w = 0; w < ATTENTION_VARIANTS; w++)
            for (int i = 0; i < 2; i++) stopwatch_release(&l->trial[w].watch[i]);
        release_memory(l);
    }
}

/* Why the cell does not fit, and which shape would fit; NULL: the cell fits. Memory must also hold
 * a copy of the inputs and, on a CPU if the user set no limit, the source of that copy. */
static const char *reason_of_memory(const struct length *l, const struct attention_cell *c,
                                    struct arena *a)
{
    char needed[32], free[32];
    int copies = l->backend->host_memory && !l->o->limited ? 2 : 1;
    int64_t bytes = c->bytes + copies * attention_input_bytes(c), limit = l->o->memory_limit;
    if (limit < 0 || bytes <= limit) return NULL;
    return arena_printf(
        a, l->o->limited ? "needs %s, the limit is %s; %s" : "needs %s, %s are free; %s",
        str_bytes(needed, (double)bytes), str_bytes(free, (double)limit),
        attention_fit_words(c, &l->target, copies, limit, a));
}

/* Makes the plan of a cell and sets the reason if it cannot or should not run. */
static enum status plan_cell(struct length *l, struct trial *t, const struct attention_cell *before,
                             double budget_ms, struct arena *a)
{
    struct attention_cell *c = t->cell;
    if (!(l->o->ways >> c->way & 1)) {
        c->reason = "not requested";
        return ST_OK;
    }
    enum status st = make_plan(l, t);
    if (st != ST_OK && st != ST_UNSUPPORTED) return st;
    if (st == ST_UNSUPPORTED) c->reason = arena_strdup(a, fail_message());
    if (before && before->T) /* the work grows with the pairs of tokens */
        c->expected_ms = before->expected_ms * pairs_of(c) / pairs_of(before);
    if (!c->reason) c->reason = reason_of_memory(l, c, a);
    if (!c->reason) c->reason = reason_of_time(l->o, c->expected_ms, budget_ms, a);
    return ST_OK;
}

static enum status run_length(struct length *l, const struct attention_cell *before,
                              double budget_ms, struct report *report, struct arena *a)
{
    for (int w = 0; w < ATTENTION_VARIANTS; w++) {
        l->trial[w].length = l;
        TRY(plan_cell(l, &l->trial[w], before ? &before[w] : NULL, budget_ms, a));
    }
    return time_trials(l, budget_ms, report, a);
}

static void close_length(struct length *l)
{
    for (int w = 0; w < ATTENTION_VARIANTS; w++) {
        for (int i = 0; i < 2; i++) stopwatch_release(&l->trial[w].watch[i]);
        if (l->trial[w].planned) plan_release(&l->trial[w].plan);
    }
    release_memory(l);
    if (l->context) l->backend->close(l->context);
    arena_release(&l->arena);
}

static enum status run_one(struct report *r, struct attention_cell *cell,
                           const struct attention_cell *before, double budget_ms, struct arena *a)
{
    struct length l = {.o = r->o, .stock = r->stock, .backend = r->o->device.backend};
    for (int w = 0; w < ATTENTION_VARIANTS; w++) l.trial[w].cell = &cell[w];
    r->cell = cell;
    show(r, 0, 0);
    TRY(backend_target(l.backend, r->o->device.number, &l.target));
    TRY(l.backend->open(r->o->device.number, &l.context));
    /* Host telemetry is not used here. */
    if (l.backend->host_memory || gauge_open(&r->gauge, l.backend, l.context, GAUGE_MS) != ST_OK)
        r->gauge = NULL;
    enum status st = run_length(&l, before, budget_ms, r, a);
    gauge_close(r->gauge);
    close_length(&l);
    if (st != ST_OK)
        return fail_in(st, "T %lld, head size %lld", (long long)cell->T, (long long)cell->D);
    r->done += r->weight;
    r->share = 0;
    show(r, 0, 0);
    return ST_OK;
}

/* The weight of a length when the remaining time is divided among the lengths: a minimum plus the
 * length. */
static double weight(const struct attention_options *o, int i)
{
    return (double)o->length[i] + (double)o->length[o->lengths - 1] / 8;
}

/* After Ctrl-C, sets the reason of each cell that has no reason and was not run. */
static void leave_out(const struct attention_options *o, struct attention_cell *cell)
{
    for (int w = 0; w < ATTENTION_VARIANTS; w++) {
        if (!(o->ways >> w & 1)) cell[w].reason = "not requested";
        if (!cell[w].reason) cell[w].reason = "not reached: the run was stopped";
    }
}

static enum status run_lengths(struct report *r, int size, bool causal, const struct stock *stock,
                               int64_t start, struct attention_cell *cell, struct arena *a)
{
    const struct attention_options *o = r->o;
    int of_length = o->precisions * ATTENTION_VARIANTS;
    for (int i = 0; i < o->lengths; i++)
        for (int d = 0; d < o->precisions; d++) {
            struct attention_cell *at = cell + i * of_length + d * ATTENTION_VARIANTS;
            double left = o->limit_ms - clock_ms(start, clock_ns());
            for (int w = 0; w < ATTENTION_VARIANTS; w++) {
                set_heads(&at[w], o, size);
                at[w].way = (enum attention_variant)w;
                at[w].causal = causal;
                at[w].precision = o->precision[d];
                at[w].T = o->length[i];
                at[w].B = o->tokens / at[w].T;
                at[w].error_y = at[w].error_dqkv = -1;
            }
            r->stock = &stock[d];
            r->weight = weight(o, i);
            double budget_ms = left * r->weight / (r->all - r->done);
            enum status st = ST_INTERRUPTED;
            if (!interrupt_noted())
                st = run_one(r, at, i ? at - of_length : o->before, budget_ms, a);
            if (st != ST_INTERRUPTED) TRY(st);
            if (st == ST_INTERRUPTED) r->stopped = true, leave_out(o, at);
        }
    return ST_OK;
}

static enum status run_size(struct report *r, int size, int64_t start, struct attention_cell *cell,
                            struct arena *a)
{
    const struct attention_options *o = r->o;
    struct arena stocks = {0};
    struct stock stock[ATTENTION_DTYPES];
    enum status st = ST_OK;
    int of_mask = o->lengths * o->precisions * ATTENTION_VARIANTS;
    for (int d = 0; d < o->precisions && st == ST_OK; d++)
        st = make_stock(o, size, attention_dtype(o->precision[d]), &stock[d], &stocks);
    for (int c = 0; c < o->masks && st == ST_OK; c++)
        st = run_lengths(r, size, o->causal[c], stock, start, cell + c * of_mask, a);
    arena_release(&stocks);
    return st;
}

enum status bench_attention_run(const struct attention_options *o, struct attention_cell **ret_cell,
                                int *ret_cells, struct arena *a)
{
    struct report r = {.o = o};
    int64_t start = clock_ns();
    int of_size = o->masks * o->lengths * o->precisions * ATTENTION_VARIANTS;
    struct attention_cell *cell = ARENA_NEW(a, struct attention_cell, o->head_sizes * of_size);
    for (int i = 0; i < o->lengths; i++)
        r.all += o->head_sizes * o->masks * o->precisions * weight(o, i);
    for (int s = 0; s < o->head_sizes; s++) TRY(run_size(&r, s, start, cell + s * of_size, a));
    *ret_cell = cell;
    *ret_cells = o->head_sizes * of_size;
    return r.stopped ? fail(ST_INTERRUPTED, "interrupted") : ST_OK;
}
