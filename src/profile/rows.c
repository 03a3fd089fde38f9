/* Turns activities into rows. One sweep over each step attributes every moment to the running
 * activity that began first, but to a collective of a GPU, which runs beside the others, only if
 * nothing else runs. A moment without activity is idle time and counts for the phase of the next
 * activity. Time after the end of the step is cut off. So rows and idle time add up to the step,
 * whatever overlaps. */
#include "profile/collect.h"

#include "base/str.h"
#include "bench/call.h"

#include <math.h>

/* Shorter kernels are bound by latency if their floor is below EXPLAINED of their time. */
static const double LATENCY_MS = 0.01, EXPLAINED = 0.25;
/* So are kernels with a floor below LITTLE_MS and below NOT_EXPLAINED of their time. */
static const double LITTLE_MS = 0.005, NOT_EXPLAINED = 0.01;

const char *bound_name(enum bound bound)
{
    static const char *const names[] = {"", "compute", "memory", "latency"};
    return names[bound];
}

const char *profile_times_name(enum profile_times by)
{
    static const char *const names[] = {"clock", "events", "cupti"};
    return names[by];
}

struct making {
    const struct collected *c;
    struct profile *p;
    int *row_of;        /* per activity */
    int *first;         /* per mark: its first row, -1: none; `next` links the others */
    int *next;          /* per row */
    int *each_capacity; /* per row: of each_ms */
    int capacity, nexts, capacities;
    double *ms[PHASE_COUNT], *idle[PHASE_COUNT]; /* per step */
    int64_t gaps, beside;
    bool primitive;
    struct arena *a;
};

/* --- describing a row ------------------------------------------------------------------------- */

static const char *types_text(const struct kernel_call *c, struct arena *a)
{
    char type[TYPE_TEXT];
    const char *text = "";
    for (int i = 0; i < c->n_in; i++)
        text = arena_printf(a, "%s%s%s", text, i ? ", " : "", type_text(type, &c->in_type[i]));
    for (int i = 0; i < c->n_out; i++)
        text = arena_printf(a, "%s%s%s", text, i ? ", " : " -> ", type_text(type, &c->out_type[i]));
    return text;
}

static void describe_node(struct making *m, struct profile_row *r, int mark)
{
    enum graph_kind kind = mark_kind(&m->c->marks, mark, &r->node);
    const struct plan *p = &m->p->engine->program.plan[kind];
    const struct node *n = &p->graph->node[r->node];
    const struct step *s = &p->step[r->node];
    r->kind = kind;
    r->plan = graph_kind_name(kind);
    r->phase = n->phase;
    r->op = n->op;
    r->op_name = op_def(n->op)->name;
    r->family = family_of(n, m->primitive);
    r->range = range_of(n, optimizer_of(m->p->engine->program.config), m->a);
    r->scope = n->scope;
    r->variant = s->kernel->variant;
    r->shape = call_shape(n->op, &s->call, m->a);
    r->types = types_text(&s->call, m->a);
    r->dtype = call_dtype(&s->call);
    r->dtype_name = dtype_name((enum dtype)r->dtype);
    r->precision = call_precision(&s->call);
    r->peak_of = machine_precision_name((enum machine_precision)r->precision);
    if (r->family == FAMILY_COMMUNICATION) return; /* it runs beside others */
    r->flops = s->cost.flops;
    r->bytes = s->cost.bytes;
}

static void describe_unmatched(struct profile_row *r, enum phase phase, const char *name)
{
    *r = (struct profile_row){.node = -1, .phase = phase, .op = OP_LEAF, .family = FAMILY_OTHER};
    r->range = (struct range){.word = {phase_name(phase), family_name(FAMILY_OTHER)}, .words = 2};
    r->range.layer = -1;
    r->scope = "";
    r->variant = name ? name : "";
}

static int new_row(struct making *m)
{
    struct profile *p = m->p;
    ARENA_GROW(m->a, p->row, p->rows, m->capacity);
    ARENA_GROW(m->a, m->next, p->rows, m->nexts);
    ARENA_GROW(m->a, m->each_capacity, p->rows, m->capacities);
    m->next[p->rows] = -1;
    m->each_capacity[p->rows] = 0;
    return p->rows++;
}

/* The row of an activity; created for the first activity of its kind. */
static int find_row(struct making *m, const struct activity *x, enum phase phase)
{
    struct profile *p = m->p;
    int head = x->mark >= 0 ? x->mark : m->c->marks.marks + (int)phase, *link = &m->first[head];
    for (; *link >= 0; link = &m->next[*link])
        if (str_same(p->row[*link].device_kernel, x->name)) return *link;
    int row = new_row(m);
    struct profile_row *r = &p->row[row];
    *r = (struct profile_row){.node = -1};
    if (x->mark >= 0)
        describe_node(m, r, x->mark);
    else
        describe_unmatched(r, phase, x->name);
    r->phase_name = phase_name((enum phase)r->phase);
    r->family_name = family_name((enum family)r->family);
    r->busy_ms = r->busiest_ms = NAN;
    r->step_ms = ARENA_NEW(m->a, double, p->steps);
    r->device_kernel = x->name;
    r->device_short = x->short_name ? x->short_name : x->name;
    /* new_row may have moved the array that `link` points into. */
    for (link = &m->first[head]; *link >= 0; link = &m->next[*link]) continue;
    *link = row;
    return row;
}

/* --- the sweep -------------------------------------------------------------------------------- */

static void add_run(struct making *m, int row, double ms)
{
    struct profile_row *r = &m->p->row[row];
    ARENA_GROW(m->a, r->each_ms, r->runs, m->each_capacity[row]);
    r->each_ms[r->runs++] = ms;
}

static enum phase phase_of(const struct making *m, const struct activity *x)
{
    int node;
    enum graph_kind kind = mark_kind(&m->c->marks, x->mark, &node);
    return m->p->engine->program.graph[kind].node[node].phase;
}

/* Phase of an unmarked activity: that of the next marked one of the step, else of the last. */
static enum phase phase_at(const struct making *m, int64_t i, int64_t end, enum phase last)
{
    const struct activity *x = m->c->trace.activity;
    for (; i < end; i++)
        if (x[i].mark >= 0) return phase_of(m, &x[i]);
    return last;
}

static bool runs_beside(const struct making *m, const struct activity *x)
{
    return m->p->by == PROFILE_TRACE && x->kind == ACTIVITY_KERNEL && x->mark >= 0 &&
           mark_communicates(&m->c->marks, x->mark);
}

/* Attributes the time from ... to, in which nothing else runs, to the collectives among activities
 * begin ... end - 1 and to idle time. Collectives follow one another; m->beside is the first that
 * may still run. */
static void fill_gap(struct making *m, int step, enum phase phase, int64_t begin, int64_t end,
                     int64_t from_ns, int64_t to_ns)
{
    int64_t left_ns = to_ns - from_ns, covered_ns = from_ns;
    if (left_ns <= 0) return;
    for (int64_t i = max_i64(m->beside, begin); i < end; i++) {
        const struct activity *x = &m->c->trace.activity[i];
        if (x->start_ns >= to_ns) break;
        if (i == m->beside && x->end_ns <= from_ns) m->beside = i + 1;
        if (!runs_beside(m, x)) continue;
        int64_t ns = min_i64(x->end_ns, to_ns) - max_i64(x->start_ns, covered_ns);
        if (ns <= 0) continue;
        struct profile_row *r = &m->p->row[m->row_of[i]];
        r->step_ms[step] += 1e-6 * (double)ns;
        r->hidden_ms -= 1e-6 * (double)ns / m->p->steps;
        m->ms[r->phase][step] += 1e-6 * (double)ns;
        covered_ns = min_i64(x->end_ns, to_ns);
        left_ns -= ns;
    }
    m->gaps += left_ns > 0;
    m->idle[phase][step] += 1e-6 * (double)left_ns;
    m->ms[phase][step] += 1e-6 * (double)left_ns;
}

static void sweep_step(struct making *m, int step, int64_t begin, int64_t end)
{
    const struct profile_span *span = &m->c->step[step];
    int64_t now = span->start_ns;
    enum phase phase = PHASE_FORWARD;
    m->beside = begin;
    for (int64_t i = begin; i < end; i++) {
        const struct activity *x = &m->c->trace.activity[i];
        phase = phase_at(m, i, end, phase);
        int row = m->row_of[i] = find_row(m, x, phase);
        int64_t start = x->start_ns > now ? x->start_ns : now;
        int64_t end_ns = x->end_ns < span->end_ns ? x->end_ns : span->end_ns;
        bool beside = runs_beside(m, x);
        double own = end_ns > start && !beside ? 1e-6 * (double)(end_ns - start) : 0;
        double here = 1e-6 * (double)(end_ns - x->start_ns);
        add_run(m, row, 1e-6 * (double)(x->end_ns - x->start_ns));
        m->p->row[row].hidden_ms += (here - own) / m->p->steps;
        if (beside) continue;
        fill_gap(m, step, phase, begin, i, now, start);
        m->ms[phase][step] += own;
        m->p->row[row].step_ms[step] += own;
        if (end_ns > now) now = end_ns > start ? end_ns : start;
    }
    fill_gap(m, step, phase, begin, end, now, span->end_ns);
}

/* --- results ---------------------------------------------------------------------------------- */

static double mean(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    return n ? sum / n : 0;
}

/* The time of a row in a step: the mean, and the median if other programs were busy. */
static double row_ms(const struct profile *p, const struct profile_row *r)
{
    return profile_is_busy(p) ? stats_of(r->step_ms, p->steps).median : r->ms;
}

static void find_floor(const struct profile *p, struct profile_row *r)
{
    /* The time of all kernels of the node, because the cost is the node's. */
    double own = row_ms(p, r);
    double ms = r->run_ms.median * (own > 0 ? r->work_ms / own : 1);
    struct floor f =
        machine_floor(p->machine, (enum machine_precision)r->precision, r->flops, r->bytes, ms);
    r->floor_ms = f.ms;
    bool is_short = ms < LATENCY_MS && r->floor_ms < EXPLAINED * ms;
    if (r->node < 0 || !(r->floor_ms > 0))
        r->bound = BOUND_NONE;
    else if (is_short || (r->floor_ms < LITTLE_MS && r->floor_ms < NOT_EXPLAINED * ms))
        r->bound = BOUND_LATENCY;
    else
        r->bound = f.compute_ms >= f.memory_ms ? BOUND_COMPUTE : BOUND_MEMORY;
    r->bound_name = bound_name((enum bound)r->bound);
}

/* Assigns the cost and the time of a node with several kernels to its longest kernel. */
static void share_cost(struct making *m, int mark)
{
    struct profile_row *r = m->p->row;
    int longest = m->first[mark];
    double ms = 0;
    for (int row = longest; row >= 0; row = m->next[row]) {
        if (r[row].ms > r[longest].ms) longest = row;
        ms += r[row].work_ms;
        r[row].work_ms = 0;
    }
    r[longest].work_ms = ms;
    for (int row = m->first[mark]; row >= 0; row = m->next[row])
        if (row != longest) r[row].flops = r[row].bytes = 0;
}

static void find_threads(struct making *m, struct profile_row *r, int mark)
{
    const struct mark_threads *t = m->c->threads ? &m->c->threads[mark] : NULL;
    if (!t) return;
    r->unseen = t->unseen;
    if (!t->regions || t->unseen) return;
    /* The mean is over all threads, so idle ones count. */
    r->busy_ms = 1e-6 * (double)t->busy_ns / m->p->threads / m->p->steps;
    r->busiest_ms = 1e-6 * (double)t->busiest_ns / m->p->steps;
}

static void conclude_rows(struct making *m)
{
    struct profile *p = m->p;
    for (int i = 0; i < p->rows; i++) {
        struct profile_row *r = &p->row[i];
        struct stats ms = stats_of(r->step_ms, p->steps);
        r->ms = ms.mean;
        r->std = p->steps > 1 ? ms.std : NAN;
        r->per_step = (double)r->runs / p->steps;
        r->run_ms = stats_of(r->each_ms, r->runs);
        r->work_ms = row_ms(p, r);
    }
    for (int mark = 0; mark < m->c->marks.marks; mark++) {
        if (m->first[mark] < 0) continue;
        share_cost(m, mark);
        find_threads(m, &p->row[m->first[mark]], mark);
    }
    for (int i = 0; i < p->rows; i++) find_floor(p, &p->row[i]);
}

static void conclude_steps(struct making *m)
{
    struct profile *p = m->p;
    double *ms = ARENA_NEW(m->a, double, p->steps);
    p->idle_step_ms = ARENA_NEW(m->a, double, p->steps);
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        p->mean_ms[phase] = mean(m->ms[phase], p->steps);
        p->idle_ms[phase] = mean(m->idle[phase], p->steps);
        for (int i = 0; i < p->steps; i++) {
            ms[i] += m->ms[phase][i];
            p->idle_step_ms[i] += m->idle[phase][i];
        }
    }
    p->whole_step_ms = ms;
    p->gaps = m->gaps / p->steps;
    p->step_ms = stats_of(ms, p->steps);
    for (int i = 1; i < p->steps; i++)
        if (fabs(ms[i] - p->step_ms.median) < fabs(ms[p->shown_step] - p->step_ms.median))
            p->shown_step = i;
}

/* Device times are rounded: an activity that begins this early does not overlap the one before. */
enum { ROUNDED_NS = 1000 };

/* Collectives, and copies that overlap a kernel, get a separate lane. */
static void make_timeline(struct making *m, int64_t begin, int64_t end)
{
    struct profile *p = m->p;
    int64_t origin = m->c->step[p->shown_step].start_ns, busy = origin;
    p->moment = ARENA_NEW(m->a, struct profile_moment, end - begin);
    for (int64_t i = begin; i < end; i++) {
        const struct activity *x = &m->c->trace.activity[i];
        int lane =
            runs_beside(m, x) || (x->kind != ACTIVITY_KERNEL && x->start_ns < busy - ROUNDED_NS);
        if (!lane && x->end_ns > busy) busy = x->end_ns;
        p->moment[p->moments++] =
            (struct profile_moment){m->row_of[i], 1e-3 * (double)(x->start_ns - origin),
                                    1e-3 * (double)(x->end_ns - origin), lane};
    }
}

static int64_t first_after(const struct trace *t, int64_t from, int64_t ns)
{
    while (from < t->activities && t->activity[from].start_ns < ns) from++;
    return from;
}

void rows_make(const struct collected *c, struct profile *p, struct arena *a)
{
    struct making m = {.c = c, .p = p, .a = a};
    int64_t *begin = ARENA_NEW(a, int64_t, p->steps), *end = ARENA_NEW(a, int64_t, p->steps);
    int heads = c->marks.marks + PHASE_COUNT;
    m.primitive = p->engine->program.config->plan.fusion == FUSION_PRIMITIVE;
    m.row_of = ARENA_NEW(a, int, c->trace.activities);
    m.first = ARENA_NEW(a, int, heads);
    for (int i = 0; i < heads; i++) m.first[i] = -1;
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        m.ms[phase] = ARENA_NEW(a, double, p->steps);
        m.idle[phase] = ARENA_NEW(a, double, p->steps);
    }
    for (int step = 0; step < p->steps; step++) {
        begin[step] = first_after(&c->trace, step ? end[step - 1] : 0, c->step[step].start_ns);
        end[step] = first_after(&c->trace, begin[step], c->step[step].end_ns);
        sweep_step(&m, step, begin[step], end[step]);
    }
    conclude_rows(&m);
    conclude_steps(&m);
    make_timeline(&m, begin[p->shown_step], end[p->shown_step]);
    p->record = (struct profile_record){.activity = c->trace.activity,
                                        .row = m.row_of,
                                        .step = c->step,
                                        .begin = begin,
                                        .end = end,
                                        .action = c->action,
                                        .actions = c->actions,
                                        .thread_span = c->thread_span,
                                        .thread_spans = c->thread_spans,
                                        .api = c->trace.api,
                                        .apis = c->trace.apis,
                                        .opening = c->opening.api,
                                        .openings = c->opening.apis};
}
