#include "bench/bench_cells.h"

#include "backend/backend.h"
#include "backend/communicator.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/load.h"
#include "base/str.h"
#include "bench/bench_engine.h"
#include "engine/crew.h"
#include "engine/device.h"
#include "engine/facts.h"
#include "engine/fit.h"
#include "engine/tune.h"
#include "measure/random_step.h"

#include <string.h>

static const char *const lines[BENCH_LINES] = {
    [BENCH_INFERENCE] = "inference",
    [BENCH_FORWARD] = "forward",
    [BENCH_BOTH] = "forward + backward",
    [BENCH_DIFFERENCE] = "backward, by difference",
    [BENCH_BACKWARD] = "backward, alone",
    [BENCH_UPDATE] = "update",
    [BENCH_STEP] = "step",
};
static const char not_reached[] = "not reached: the run was stopped";

const char *bench_line_name(enum bench_line line)
{
    return lines[line];
}

unsigned bench_lines_of(const char *word, int64_t length)
{
    static const struct {
        const char *word;
        unsigned lines;
    } words[] = {
        {"inference", 1u << BENCH_INFERENCE},
        {"forward", 1u << BENCH_FORWARD},
        {"backward",
         1u << BENCH_FORWARD | 1u << BENCH_BOTH | 1u << BENCH_DIFFERENCE | 1u << BENCH_BACKWARD},
        {"update", 1u << BENCH_UPDATE},
        {"step", 1u << BENCH_STEP},
    };
    for (int i = 0; i < COUNT_OF(words); i++)
        if ((int64_t)strlen(words[i].word) == length &&
            !strncmp(words[i].word, word, (size_t)length))
            return words[i].lines;
    return 0;
}

enum bench_line bench_line_of_loss(unsigned of)
{
    static const enum bench_line makers[] = {BENCH_STEP, BENCH_BOTH, BENCH_INFERENCE};
    for (int i = 0; i < COUNT_OF(makers); i++)
        if (of >> makers[i] & 1) return makers[i];
    return BENCH_LINES;
}

/* --- whether it fits -------------------------------------------------------------------------- */

/* The bytes that a program needs for all ranks on this machine. */
static int64_t bytes_of(const struct program *p)
{
    return program_bytes(p) * communicator_local_ranks(p->config->ranks.count);
}

static const char *reason_of_memory(const struct program *p, unsigned kinds, int64_t room,
                                    bool limited, struct arena *a)
{
    char needed[32], there[32];
    int64_t bytes = bytes_of(p);
    if (room < 0 || bytes <= room) return NULL;
    return arena_printf(a,
                        limited ? "needs %s of memory, the limit is %s; %s"
                                : "needs %s of memory, %s are free; %s",
                        str_bytes(needed, (double)bytes), str_bytes(there, (double)room),
                        fit_words(p, kinds, room, a));
}

/* The requirements of a selection of a cell's lines. */
struct need {
    int64_t bytes;
    const char *reason; /* why the lines cannot run; NULL: they can */
    double flops;       /* of one run of all lines */
    bool room;          /* the reason is that memory does not suffice */
    char work[HASH_HEX];
};

static enum status plan_lines(const struct bench_cell *c, unsigned some, int64_t room, bool limited,
                              struct need *ret, struct arena *a)
{
    struct arena scratch = {0};
    struct program p;
    *ret = (struct need){0};
    crew_set_threads(&c->config);
    unsigned kinds = bench_kinds(&c->config, some);
    enum status st =
        program_for(&p, &c->config, c->vocab, kinds, device_backend(&c->config), &scratch);
    if (st == ST_OK) {
        ret->bytes = bytes_of(&p);
        ret->reason = reason_of_memory(&p, kinds, room, limited, a);
        ret->room = ret->reason != NULL;
        if (p.built[GRAPH_MICRO]) memcpy(ret->work, facts_of(&p).work, sizeof ret->work);
        for (int kind = 0; kind < GRAPH_COUNT; kind++)
            if (p.built[kind]) ret->flops += plan_cost(&p.plan[kind]).flops;
        if (p.built[GRAPH_MICRO_MORE])
            ret->flops += (double)(c->config.train.gradient_accumulation_steps - 2) *
                          plan_cost(&p.plan[GRAPH_MICRO_MORE]).flops;
    } else if (st == ST_UNSUPPORTED) {
        ret->reason = arena_strdup(a, fail_message());
        st = ST_OK;
    }
    arena_release(&scratch);
    return st;
}

/* Sets of lines that are left out, one after another, until the other lines fit. */
static const unsigned heavy[] = {
    1u << BENCH_UPDATE | 1u << BENCH_STEP,
    1u << BENCH_FORWARD | 1u << BENCH_BOTH | 1u << BENCH_DIFFERENCE | 1u << BENCH_BACKWARD,
};

static void refuse(struct bench_cell *c, unsigned some, const struct need *n)
{
    c->refused |= some;
    for (int l = 0; l < BENCH_LINES; l++)
        if (some >> l & 1) {
            c->line[l].reason = n->reason;
            c->line[l].needs_bytes = n->bytes;
        }
}

/* Sets c->bytes, and c->reason if no line can run within `room` bytes (-1: unknown, no limit), else
 * c->refused. *ret_flops: FLOPs of one run of all lines. */
static enum status plan_cell(struct bench_cell *c, int64_t room, bool limited, double *ret_flops,
                             struct arena *a)
{
    struct need first, n;
    unsigned rest = c->lines;
    c->tokens = c->config.data.batch_size * c->config.model.block_size *
                c->config.train.gradient_accumulation_steps;
    TRY(plan_lines(c, rest, room, limited, &first, a));
    n = first;
    for (int i = 0; i < COUNT_OF(heavy) && n.room; i++) {
        unsigned some = rest & heavy[i];
        if (!some) continue;
        refuse(c, some, &n);
        rest &= ~some;
        if (!rest) break;
        TRY(plan_lines(c, rest, room, limited, &n, a));
    }
    if (n.reason) { /* no line fits: the reason is that of all lines together */
        c->refused = 0;
        c->reason = first.reason;
        c->bytes = first.bytes;
    } else {
        c->lines = rest;
        c->bytes = n.bytes;
        memcpy(c->work, n.work, sizeof c->work);
    }
    *ret_flops = n.flops;
    return ST_OK;
}

/* --- cells that run --------------------------------------------------------------------------- */

struct running {
    struct bench_cell *cell;
    double work;                 /* FLOPs of all steps, as a measure of progress */
    int taken;                   /* samples so far */
    struct bench_engine *engine; /* NULL: not open */
    bool begun;                  /* a step has run, so first_ms is set */
};

struct running_all {
    const struct bench_options *o;
    struct running *running;
    int n;
    double done, all;
    struct arena *a;
};

static void show(struct running_all *all, struct running *r)
{
    const struct bench_options *o = all->o;
    double share = all->all > 0 ? all->done / all->all : 0;
    if (o->each) o->each(o->user, share < 1 ? share : 1, o->name ? o->name(o->user, r->cell) : "");
}

static double step_work(const struct running *r)
{
    return r->work / (r->cell->warmup + r->cell->steps);
}

/* The backend reports the setup time since the engine was opened, so the setup of the first step is
 * a difference. */
static void note_start(struct running *r, int which, int64_t start)
{
    struct bench_start *s = &r->cell->start[which];
    const struct kernel_setup *before = &r->cell->start[BENCH_OPENING].setup;
    s->ms = clock_ms(start, clock_ns());
    bench_engine_setup(r->engine, &s->setup);
    if (which == BENCH_OPENING) return;
    s->setup.compile_ms -= before->compile_ms;
    s->setup.load_ms -= before->load_ms;
    s->setup.choose_ms -= before->choose_ms;
}

/* Runs one step; `at` is the number of the sample, or -1 for a warm-up. */
static enum status run_step(struct running_all *all, struct running *r, int at)
{
    double ms[BENCH_LINES] = {0};
    struct bench_cell *c = r->cell;
    bool keep = at >= 0 || c->runs < c->warmup; /* false in the second warm-up of BENCH_TWICE */
    int64_t start = clock_ns();
    crew_set_threads(&c->config);
    TRY(bench_engine_step(r->engine, ms));
    if (!r->begun) note_start(r, BENCH_FIRST_STEP, start);
    for (int l = 0; l < BENCH_LINES; l++) {
        if (!(c->lines >> l & 1)) continue;
        if (!r->begun) c->line[l].first_ms = ms[l];
        if (keep) c->line[l].all_ms[c->runs] = ms[l];
    }
    c->runs += keep;
    if (!r->begun) c->loss = bench_engine_loss(r->engine);
    r->begun = true;
    all->done += step_work(r);
    show(all, r);
    return ST_OK;
}

static void close_cell(struct running *r)
{
    if (r->engine) bench_engine_close(r->engine);
    r->engine = NULL;
}

/* Runs one step. Captured graphs and libraries may use up the memory during the step; then the cell
 * gets a reason. */
static enum status step_or_reason(struct running_all *all, struct running *r, int at)
{
    enum status st = run_step(all, r, at);
    if (st != ST_MEMORY) return st;
    r->cell->reason = arena_printf(all->a, "did not fit: %s", fail_message());
    close_cell(r);
    return ST_OK;
}

/* Opens the engine of a cell. If that fails, the cell gets a reason: libraries need memory that the
 * plans do not count. */
static enum status open_cell(struct running_all *all, struct running *r)
{
    if (r->engine || r->cell->reason || interrupt_noted()) return ST_OK;
    crew_set_threads(&r->cell->config);
    show(all, r);
    int64_t start = clock_ns();
    enum status st =
        bench_engine_open(&r->engine, &r->cell->config, r->cell->vocab, r->cell->lines);
    if (st == ST_OK && !r->begun) note_start(r, BENCH_OPENING, start);
    if (st != ST_UNSUPPORTED && st != ST_DEVICE && st != ST_MEMORY) return st;
    r->cell->reason = arena_strdup(all->a, fail_message());
    return ST_OK;
}

static bool can_step(const struct running *r)
{
    return r->engine && !interrupt_noted();
}

static enum status warm_up(struct running_all *all, struct running *r)
{
    for (int i = 0; i < r->cell->warmup && can_step(r); i++) TRY(step_or_reason(all, r, -1));
    return ST_OK;
}

static enum status sample_until(struct running_all *all, struct running *r, int to)
{
    while (r->taken < to && can_step(r)) {
        TRY(step_or_reason(all, r, r->taken));
        if (r->engine) r->taken++; /* no engine: memory ran out */
    }
    return ST_OK;
}

static enum status run_rounds(struct running_all *all)
{
    int most = 0;
    for (int i = 0; i < all->n; i++) TRY(open_cell(all, &all->running[i]));
    for (int i = 0; i < all->n; i++) {
        TRY(warm_up(all, &all->running[i]));
        if (all->running[i].cell->steps > most) most = all->running[i].cell->steps;
    }
    for (int round = 0; round < most; round++)
        for (int k = 0; k < all->n; k++) {
            struct running *r = &all->running[(k + round) % all->n];
            TRY(sample_until(all, r, (int)((round + 1LL) * r->cell->steps / most)));
        }
    return ST_OK;
}

static enum status run_cell(struct running_all *all, struct running *r, int to, bool keep)
{
    TRY(open_cell(all, r));
    TRY(warm_up(all, r));
    TRY(sample_until(all, r, to));
    if (!keep) close_cell(r);
    return ST_OK;
}

static enum status run_sequentially(struct running_all *all, bool twice, bool keep)
{
    for (int i = 0; twice && i + 1 < all->n; i++) /* all cells except the last warm up twice */
        all->all += step_work(&all->running[i]) * all->running[i].cell->warmup;
    for (int i = 0; i < all->n; i++) {
        struct running *r = &all->running[i];
        bool halved = twice && i + 1 < all->n; /* the last cell takes all samples at once */
        TRY(run_cell(all, r, halved ? (r->cell->steps + 1) / 2 : r->cell->steps, keep));
    }
    for (int i = all->n - 2; twice && i >= 0; i--)
        if (all->running[i].taken < all->running[i].cell->steps)
            TRY(run_cell(all, &all->running[i], all->running[i].cell->steps, keep));
    return ST_OK;
}

/* --- all cells -------------------------------------------------------------------------------- */

static void conclude(const struct running *r)
{
    struct bench_cell *c = r->cell;
    if (!c->reason && r->taken == 0) c->reason = not_reached;
    for (int l = 0; l < BENCH_LINES; l++) {
        if (!(c->lines >> l & 1)) continue;
        c->line[l].series = c->line[l].all_ms + c->warmup;
        c->line[l].ms = stats_of(c->line[l].series, r->taken);
    }
}

static enum bench_order order_of(const struct running_all *all, bool host, bool together)
{
    bool alike = true; /* resizing the thread team between samples would affect the times */
    if (all->o->order != BENCH_AUTO) return all->o->order;
    for (int i = 0; i < all->n; i++) {
        int warmup = all->running[i].cell->warmup;
        if (warmup == 0 || warmup != all->running[0].cell->warmup) return BENCH_ONCE;
        alike &=
            all->running[i].cell->config.plan.threads == all->running[0].cell->config.plan.threads;
    }
    return host && together && alike ? BENCH_ROUNDS : BENCH_TWICE;
}

static void add_running(struct running_all *all, struct bench_cell *c, double flops)
{
    struct running *r = &all->running[all->n++];
    *r = (struct running){.cell = c, .work = flops * (c->warmup + c->steps)};
    for (int l = 0; l < BENCH_LINES; l++)
        c->line[l].all_ms = ARENA_NEW(all->a, double, c->warmup + c->steps);
    all->all += r->work;
}

static enum status run_cells(struct running_all *all, struct bench_cell *cell, int cells,
                             enum bench_order *ret_order)
{
    struct device device;
    int64_t sum = 0, limit = all->o->limit;
    TRY(device_of(&cell[0].config, &device));
    int64_t free = device.backend->devices.free_memory(device.number);
    bool limited = limit && (free < 0 || limit < free);
    int64_t room = limited ? limit : free;
    for (int i = 0; i < cells; i++) {
        double flops = 0;
        if (!cell[i].reason && interrupt_noted()) cell[i].reason = not_reached;
        if (!cell[i].reason) TRY(plan_cell(&cell[i], room, limited, &flops, all->a));
        if (cell[i].reason) continue;
        add_running(all, &cell[i], flops);
        sum += cell[i].bytes;
    }
    /* Leaves a part of the memory free, on a GPU for the kernels and captured graphs of all
     * cells. */
    int64_t share = device.backend->host_memory ? room / 10 * 9 : room / 4 * 3;
    bool together = room < 0 || sum <= share;
    enum bench_order order = order_of(all, device.backend->host_memory, together);
    if (order == BENCH_ROUNDS && !together) order = BENCH_TWICE;
    if (ret_order) *ret_order = order;
    bool twice = order == BENCH_TWICE;
    struct load load = load_start();
    TRY(order == BENCH_ROUNDS ? run_rounds(all) : run_sequentially(all, twice, together && twice));
    double others = device.backend->host_memory ? load_others(&load) : 0; /* no effect on a GPU */
    for (int i = 0; i < all->n; i++) all->running[i].cell->others = others;
    return ST_OK;
}

double bench_line_tokens(const struct bench_cell *c, enum bench_line line)
{
    double micro_steps = (double)c->config.train.gradient_accumulation_steps;
    return (double)c->tokens / (line == BENCH_STEP ? 1 : micro_steps);
}

/* The samples of a line as input of the judge. Threads, instruction set and device are added to the
 * hash of the work, because the hash does not cover them. BENCH_INFERENCE has no hash. */
static struct timed timed_of(const struct bench_cell *c, enum bench_line line,
                             enum bench_order order, struct arena *a)
{
    const struct config_plan *p = &c->config.plan;
    const struct stats *ms = &c->line[line].ms;
    bool update = line == BENCH_UPDATE;
    struct timed t = {.ms = c->line[line].series, .unit = update ? "update" : "token"};
    t.n = ms->mean > 0 ? ms->n : 0;
    if (order == BENCH_ROUNDS) t.turn = timed_rounds(t.n, a);
    t.work = update ? 1 : bench_line_tokens(c, line);
    if (line != BENCH_INFERENCE && c->work[0])
        t.plan =
            arena_printf(a, "%s %lld %d %d", c->work, (long long)p->threads, p->isa, p->device);
    t.others = c->others;
    return t;
}

struct judgement bench_cells_judge(const struct bench_cell *first, const struct bench_cell *second,
                                   enum bench_line line, enum bench_order order)
{
    struct arena scratch = {0};
    struct timed x = timed_of(first, line, order, &scratch),
                 y = timed_of(second, line, order, &scratch);
    struct judgement j = judge(&x, &y);
    arena_release(&scratch);
    return j;
}

enum status bench_cells_run(const struct bench_options *o, struct bench_cell *cell, int cells,
                            enum bench_order *ret_order, struct arena *a)
{
    struct running_all all = {.o = o, .a = a, .running = ARENA_NEW(a, struct running, cells)};
    BUG_IF(cells < 1, "no cells");
    enum status st = run_cells(&all, cell, cells, ret_order);
    for (int i = 0; i < all.n; i++) {
        close_cell(&all.running[i]);
        if (st == ST_OK) conclude(&all.running[i]);
    }
    return st;
}
