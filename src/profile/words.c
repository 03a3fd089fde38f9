#include "profile/words.h"

#include "base/load.h"
#include "base/str.h"
#include "profile/rung.h"

#include <math.h>
#include <string.h>

enum {
    FORWARD = 1 << PHASE_FORWARD,
    BACKWARD = 1 << PHASE_BACKWARD,
    LEARNING = FORWARD | BACKWARD
};

struct writer {
    const struct profile *p;
    struct profile_words *ret;
    struct arena *a;
};

static void add_sentence(struct writer *s, const char *about, const char *text)
{
    BUG_IF(s->ret->words == WORDS_MOST, "too many sentences");
    s->ret->word[s->ret->words++] = (struct profile_word){about, text};
}

#define ADD(s, about, ...) add_sentence(s, about, arena_printf((s)->a, __VA_ARGS__))

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

/* A number with that many digits and no exponent. */
static const char *number(const struct writer *s, double x, int digits)
{
    char text[32];
    return arena_strdup(s->a, str_number(text, x, digits));
}

/* --- how it was measured ---------------------------------------------------------------------- */

static void add_phases(struct writer *s)
{
    const char *text = "";
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        if (s->p->mean_ms[phase] > 0)
            text = arena_printf(s->a, "%s%s%s %s ms", text, *text ? ", " : "",
                                phase_name((enum phase)phase), number(s, s->p->mean_ms[phase], 4));
    add_sentence(s, "phases", *text ? arena_printf(s->a, "mean step: %s", text) : text);
}

/* Two digits, or whole percents from 100 on. */
static const char *overhead_text(const struct writer *s, double share)
{
    return arena_printf(s->a, fabs(share) >= .995 ? "%.0f" : "%.2g", 100 * share);
}

static void add_time(struct writer *s)
{
    const struct profile *p = s->p;
    const char *spread = "", *by = p->traced_by ? p->traced_by : "the device trace";
    if (p->steps > 1)
        spread = arena_printf(s->a, "; mean %s ms, std %s", number(s, p->step_ms.mean, 4),
                              number(s, p->step_ms.std, 3));
    if (p->by == PROFILE_CLOCK) by = "the host clock around each kernel";
    if (p->by == PROFILE_EVENTS) by = "device events, one after each kernel";
    const char *replay = p->replay ? ", replayed from a captured graph" : "";
    ADD(s, "step",
        "median %s ms over %d profiled step%s (%s ms over %d unprofiled)%s%s; timed by %s",
        number(s, p->step_ms.median, 4), p->steps, plural(p->steps),
        number(s, p->plain_ms.median, 4), p->plain_ms.n, replay, spread, by);
    add_phases(s);
    const char *median = overhead_text(s, p->overhead), *low = overhead_text(s, p->overhead_low),
               *high = overhead_text(s, p->overhead_high);
    bool lost = p->overhead_low < 0;
    if (p->overhead_low == p->overhead_high)
        ADD(s, "overhead", "%s%s %%, from one pair of a profiled and an unprofiled step",
            lost ? "profiling overhead cannot be told from noise: " : "profiling adds ", median);
    else if (lost)
        ADD(s, "overhead",
            "profiling overhead cannot be told from noise: median %s %%, half of the pairs between "
            "%s and %s %%",
            median, low, high);
    else
        ADD(s, "overhead",
            "profiling adds %s %% (%s to %s %% in half of the pairs of a profiled and an "
            "unprofiled step)",
            median, low, high);
}

static void add_events(struct writer *s)
{
    const struct profile *p = s->p;
    if (p->by != PROFILE_EVENTS) return;
    const char *unplayed = p->engine->program.config->plan.replay == REPLAY_TRUE
                               ? " Unprofiled steps are replayed from a captured graph and "
                                 "profiled steps cannot be: the overhead includes that."
                               : "";
    ADD(s, "events",
        "there is no device trace: %s. The gap before a kernel counts as time of that kernel.%s",
        p->why, unplayed);
}

/* Other processes do not slow a GPU's kernels. */
static void add_others(struct writer *s)
{
    const char *longer = s->p->engine->backend->host_memory ? "times are" : "host times are";
    if (load_is_busy(s->p->others))
        ADD(s, "others",
            "other processes kept %.2g processor%s busy during the measurement: %s longer than on "
            "an idle machine%s",
            s->p->others, s->p->others > 0.95 && s->p->others < 1.05 ? "" : "s", longer,
            profile_is_busy(s->p) ? "; rates and floors are of medians" : "");
}

static void add_dropped(struct writer *s)
{
    const struct profile *p = s->p;
    if (!p->dropped && !p->unmatched) return;
    ADD(s, "dropped", "%lld device activities were lost and %lld match no known kernel%s%s",
        (long long)p->dropped, (long long)p->unmatched, p->dropped_why ? ": " : "",
        p->dropped_why ? p->dropped_why : "");
}

/* --- what takes the time ---------------------------------------------------------------------- */

/* The kernel that takes the most time. Device kernels are told apart by their full name; the
 * shortened name that is shown need not be unique. */
struct top {
    const char *name, *shown;
    double ms;
    int runs;
};

static bool counts(const struct profile_row *r, unsigned phases)
{
    return r->node >= 0 && phases >> r->phase & 1;
}

/* `name` has one entry per row. */
static struct top top_of(const struct profile *p, unsigned phases, const char *const *name)
{
    struct top top = {0};
    for (int i = 0; i < p->rows; i++) {
        const char *shown = p->row[i].device_short;
        struct top sum = {.name = name[i], .shown = shown ? shown : name[i]};
        if (!counts(&p->row[i], phases)) continue;
        for (int k = 0; k < p->rows; k++) {
            const struct profile_row *x = &p->row[k];
            if (!counts(x, phases) || strcmp(name[k], sum.name) != 0) continue;
            sum.ms += x->ms;
            sum.runs += (x->runs + p->steps / 2) / p->steps;
        }
        if (sum.ms > top.ms) top = sum;
    }
    return top;
}

static void add_top(struct writer *s)
{
    const struct profile *p = s->p;
    const char **name = ARENA_NEW(s->a, const char *, p->rows);
    for (int i = 0; i < p->rows; i++) {
        const struct profile_row *r = &p->row[i];
        name[i] = r->device_kernel ? r->device_kernel : profile_kernel_name(r, s->a);
    }
    struct top forward = top_of(p, FORWARD, name), both = top_of(p, LEARNING, name);
    if (!forward.name) return;
    const char *first = arena_printf(s->a, "%s takes the most time in forward (%d run%s, %.3g %%)",
                                     forward.shown, forward.runs, plural(forward.runs),
                                     percent(forward.ms, profile_ms(p, FORWARD)));
    double share = percent(both.ms, profile_ms(p, LEARNING));
    ADD(s, "top kernel", "%s. With backward included, %s (%d run%s, %.3g %%)", first,
        strcmp(forward.name, both.name) == 0 ? "it still does"
                                             : arena_printf(s->a, "%s does", both.shown),
        both.runs, plural(both.runs), share);
}

static double share_of(const struct profile *p, unsigned phases, enum family family)
{
    return percent(profile_family_ms(p, phases, family), profile_ms(p, phases));
}

/* A model may have no matmuls, and a step no backward pass or no optimizer. */
static void add_matmuls(struct writer *s)
{
    const struct profile *p = s->p;
    double forward = share_of(p, FORWARD, FAMILY_MATMUL);
    if (!(forward > 0)) return;
    const char *text = arena_printf(s->a, "matmuls take %.3g %% of forward", forward);
    if (profile_ms(p, BACKWARD) > 0)
        text = arena_printf(s->a, "%s, %.3g %% of forward + backward", text,
                            share_of(p, LEARNING, FAMILY_MATMUL));
    if (profile_family_ms(p, PHASES_ALL, FAMILY_OPTIMIZER) > 0)
        text = arena_printf(
            s->a, "%s, %.3g %% of the whole step; the optimizer takes %.3g %% of the step", text,
            share_of(p, PHASES_ALL, FAMILY_MATMUL), share_of(p, PHASES_ALL, FAMILY_OPTIMIZER));
    add_sentence(s, "matmuls", text);
}

/* --- attention -------------------------------------------------------------------------------- */

struct work {
    double ms, flops;
};

/* The work of one family inside attention, without the projections to q, k, v and of the output.
 * Forward work that the backward pass recomputes does not count as backward work. */
static struct work work_inside(const struct profile *p, enum phase phase, enum family family)
{
    struct work sum = {0};
    for (int i = 0; i < p->rows; i++) {
        const struct profile_row *r = &p->row[i];
        const char *last = r->range.words ? r->range.word[r->range.words - 1] : "";
        bool inside = strcmp(last, "q, k, v") != 0 && strcmp(last, "projection") != 0;
        if (r->node < 0 || r->phase != phase || r->family != (int)family || !inside) continue;
        if (!range_has(&r->range, "attention") || range_has(&r->range, "recomputed")) continue;
        sum.ms += r->ms;
        sum.flops += r->flops * r->per_step;
    }
    return sum;
}

static const char *softmax_words(struct writer *s, enum phase phase, int matmuls)
{
    struct work softmax = work_inside(s->p, phase, FAMILY_SOFTMAX);
    struct work product = work_inside(s->p, phase, FAMILY_MATMUL);
    if (!(softmax.ms > 0) || !(product.ms > 0)) return NULL;
    return arena_printf(s->a,
                        "%s: softmax takes %s ms against %s ms for the %d matmuls, %s times the "
                        "time for %s times the FLOPs",
                        phase_name(phase), number(s, softmax.ms, 3), number(s, product.ms, 3),
                        matmuls, number(s, softmax.ms / product.ms, 3),
                        number(s, softmax.flops / product.flops, 3));
}

/* Kernels per step; an operator may run several. */
static int family_runs(const struct profile *p, unsigned phases, enum family family)
{
    int runs = 0;
    for (int i = 0; i < p->rows; i++)
        if (counts(&p->row[i], phases) && p->row[i].family == (int)family) runs += p->row[i].runs;
    return (runs + p->steps / 2) / p->steps;
}

static void add_flash(struct writer *s, double ms)
{
    int runs = family_runs(s->p, LEARNING, FAMILY_ATTENTION);
    ADD(s, "attention",
        "flash attention: one operator per pass, %d kernel%s per step, %.3g %% of forward + "
        "backward; --flash=false shows softmax and the matmuls separately",
        runs, plural(runs), percent(ms, profile_ms(s->p, LEARNING)));
}

static void add_attention(struct writer *s)
{
    const char *forward = softmax_words(s, PHASE_FORWARD, 2);
    const char *backward = softmax_words(s, PHASE_BACKWARD, 4);
    double flash = profile_family_ms(s->p, LEARNING, FAMILY_ATTENTION);
    if (forward && backward)
        ADD(s, "attention", "inside slow attention, %s; %s", forward, backward);
    else if (forward)
        ADD(s, "attention", "inside slow attention, %s", forward);
    else if (flash > 0)
        add_flash(s, flash);
}

/* --- idle time and limits --------------------------------------------------------------------- */

static void add_host(struct writer *s)
{
    const struct profile *p = s->p;
    double idle = profile_family_ms(p, PHASES_ALL, FAMILY_IDLE), step = p->step_ms.mean;
    const char *gaps =
        arena_printf(s->a, "%.3g %% of the mean step, in %lld gap%s of %s µs on average",
                     percent(idle, step), (long long)p->gaps, plural((int)p->gaps),
                     number(s, p->gaps ? 1e3 * idle / (double)p->gaps : 0, 3));
    if (p->engine->backend->host_memory) {
        ADD(s, "idle", "no kernel runs for %s", gaps);
        return;
    }
    double device = p->plain_ms.median;
    ADD(s, "host", "the host takes %s ms to launch a step that takes %s ms (medians): %s",
        number(s, p->host_ms, 3), number(s, device, 4),
        p->host_ms > 0.9 * device ? "the device waits for the host"
                                  : "the host runs ahead of the device");
    if (p->by == PROFILE_TRACE)
        ADD(s, "idle", "the device is idle for %s%s", gaps,
            p->dropped ? "; that includes activities that the trace lost" : "");
}

static void add_threads(struct writer *s)
{
    const struct profile *p = s->p;
    double seen = 0, busy = 0, busiest = 0, unseen = 0;
    if (!p->threads) return;
    for (int i = 0; i < p->rows; i++) {
        const struct profile_row *r = &p->row[i];
        if (r->unseen) unseen += r->ms;
        if (!(r->busy_ms > 0)) continue;
        seen += r->ms;
        busy += r->busy_ms;
        busiest += r->busiest_ms;
    }
    const char *library = "";
    if (unseen > 0)
        library = arena_printf(
            s->a, "; the library's matmuls (%.3g %% of the step) do not report their threads",
            percent(unseen, p->step_ms.mean));
    if (p->threads == 1)
        add_sentence(s, "threads", "one thread: there is no imbalance");
    else if (seen > 0)
        ADD(s, "threads",
            "%d threads are busy for %.3g %% of the time of Strobe's own kernels (%s ms) on "
            "average; the busiest works %.3g %% longer than the mean%s",
            p->threads, percent(busy, seen), number(s, seen, 3), percent(busiest - busy, busy),
            library);
}

/* "1.123 TFLOP", "64.2 MFLOP" */
static const char *amount(struct writer *s, double x, const char *unit)
{
    static const char *const thousands[] = {"", "k", "M", "G", "T", "P"};
    int i = 0;
    for (; x >= 1000 && i < COUNT_OF(thousands) - 1; i++) x /= 1000;
    return arena_printf(s->a, "%.4g %s%s", x, thousands[i], unit);
}

static void add_floor(struct writer *s)
{
    const struct profile *p = s->p;
    struct profile_groups g;
    profile_groups(p, BY_PHASE, PHASES_ALL, &g, s->a);
    if (!(g.floor_ms > 0)) return;
    bool busy = profile_is_busy(p);
    int beaten = 0;
    for (int i = 0; i < p->rows; i++) {
        const struct profile_row *r = &p->row[i];
        beaten += r->floor_ms > 0 && r->runs * r->floor_ms > p->steps * r->work_ms;
    }
    const char *low =
        beaten ? arena_printf(s->a,
                              "; %d kernel%s faster than %s floor, so a peak was measured too low: "
                              "`strobe machine` measures it again",
                              beaten, beaten == 1 ? " is" : "s are", beaten == 1 ? "its" : "their")
               : "";
    ADD(s, "floor",
        "%s and %s per step take at least %s ms at this machine's measured peaks: the %s step "
        "takes %s times as long%s",
        amount(s, g.flops, "FLOP"), amount(s, g.bytes, "B"), number(s, g.floor_ms, 4),
        busy ? "median" : "mean",
        number(s, (busy ? p->step_ms.median : p->step_ms.mean) / g.floor_ms, 3), low);
}

/* The kernel that moves most bytes beyond the plan's; NULL: none moves many, compared with its plan
 * or with `moved`, those of the step. What earlier kernels left in L2 is written while a later one
 * runs, and a launch itself reads some kilobytes. */
static const struct profile_group *most_beyond(const struct profile_groups *g, double moved)
{
    static const double PLANNED = 1.01, FEW = 0.001;
    const struct profile_group *most = NULL;
    for (const struct profile_group *x = g->group; x < g->group + g->groups; x++) {
        double beyond = x->work_dram - x->planned_dram;
        if (x->work_dram <= PLANNED * x->planned_dram || beyond < FEW * moved) continue;
        if (!most || beyond > most->work_dram - most->planned_dram) most = x;
    }
    return most;
}

/* An operator of several kernels: what those besides the named one move. */
static const char *others_words(struct writer *s, const struct profile_group *x)
{
    double others = x->work_dram - x->counters.dram_read - x->counters.dram_written;
    if (others < 0.01 * x->work_dram) return "";
    return arena_printf(s->a, ", %s of it in other kernels of the same operator",
                        amount(s, others, "B"));
}

static void add_counters(struct writer *s)
{
    struct profile_groups g;
    double moved = 0, planned = 0;
    if (s->p->counters_why) ADD(s, "counters", "no hardware counters: %s", s->p->counters_why);
    if (!s->p->counted) return;
    profile_groups(s->p, BY_KERNEL, PHASES_ALL, &g, s->a);
    for (int i = 0; i < g.groups; i++) {
        moved += g.group[i].work_dram;
        planned += g.group[i].planned_dram;
    }
    const struct profile_group *most = most_beyond(&g, moved);
    const char *text = arena_printf(
        s->a, "the step's kernels move %s in DRAM, %s times the plan's %s", amount(s, moved, "B"),
        number(s, planned > 0 ? moved / planned : 0, 3), amount(s, planned, "B"));
    if (!most)
        ADD(s, "counters", "%s; no kernel moves much more than planned", text);
    else
        ADD(s, "counters", "%s; %s moves most more than planned: %s instead of %s (%s times)%s",
            text, most->name, amount(s, most->work_dram, "B"), amount(s, most->planned_dram, "B"),
            number(s, most->work_dram / most->planned_dram, 3), others_words(s, most));
}

/* --- the ladder ------------------------------------------------------------------------------- */

static const char *ops_words(struct writer *s, const struct rung_op *op, int n)
{
    const char *words = "";
    for (int i = 0; i < n; i++) {
        const char *ms = op[i].ms > 0 ? arena_printf(s->a, " (%s ms)", number(s, op[i].ms, 2)) : "";
        words = arena_printf(s->a, "%s%s%d %s%s", words, i ? ", " : "", op[i].runs,
                             op_def(op[i].op)->name, ms);
    }
    return n == RUNG_OPS ? arena_printf(s->a, "%s ...", words) : words;
}

/* Removed kernels are a saving only if nothing replaces them. */
static const char *replaced_words(struct writer *s, const char *text, const struct rung *r)
{
    const char *ms = number(s, r->gone_ms, 3), *gone = ops_words(s, r->gone_op, r->gone_ops);
    double share = percent(r->gone_ms, s->p->step_ms.mean);
    if (!r->come)
        return arena_printf(s->a, "%s: removes %d kernel%s per step, %s ms (%.3g %%): %s", text,
                            r->gone, plural(r->gone), ms, share, gone);
    return arena_printf(s->a,
                        "%s: %s instead of %d kernel%s that take%s %s ms per step (%.3g %%): %s; "
                        "the time of the new kernel%s is not known until %s",
                        text, ops_words(s, r->come_op, r->come_ops), r->gone, plural(r->gone),
                        r->gone == 1 ? "s" : "", ms, share, gone, plural(r->come),
                        r->come == 1 ? "it runs" : "they run");
}

/* The ratio of the peaks bounds the gain of matmuls; there is no such bound for other kernels. */
static const char *gain_words(struct writer *s, const struct rung *r)
{
    if (!(r->gain_ms > 0)) return "; the gain is not estimated";
    return arena_printf(s->a,
                        "; %s ms of that are matmuls, which save at most %s ms by the ratio of the "
                        "measured peaks; the gain of the others is not estimated",
                        number(s, r->matmuls_ms, 3), number(s, r->gain_ms, 3));
}

/* A process does not learn when the others begin a collective. */
static const char *waits_words(struct writer *s, const struct profile_communication *c)
{
    if (c->kernels) return "; NCCL's kernels include the time in which they wait for other ranks";
    if (c->seen < c->ranks) return "; that includes the time in which it waits for other ranks";
    const char *waited = "";
    for (int r = 0; r < c->seen; r++)
        waited =
            arena_printf(s->a, "%s%s%s", waited, r ? ", " : "", number(s, c->rank[r].waited_ms, 3));
    return arena_printf(s->a,
                        "; in all its collectives rank 0 ... %d waits for the slowest rank for %s "
                        "ms",
                        c->ranks - 1, waited);
}

static void add_communication(struct writer *s)
{
    const struct profile_communication *c = s->p->communication;
    if (!c) return;
    ADD(s, "ranks",
        "communication takes %s ms of a step at rank 0: %s ms (%.3g %%) beside kernels that "
        "compute (hidden), %s ms exposed%s",
        number(s, c->all_ms, 3), number(s, c->hidden_ms, 3), percent(c->hidden_ms, c->all_ms),
        number(s, c->exposed_ms, 3), waits_words(s, c));
    if (c->seen == c->ranks && s->p->machine && machine_link_rate(s->p->machine, c->ranks, 1) == 0)
        ADD(s, "link",
            "all-reduces of %d ranks were not measured: `strobe machine --ranks=%d` measures the "
            "ceiling of their GB/s",
            c->ranks, c->ranks);
}

static void add_rung(struct writer *s)
{
    struct rung r;
    const struct profile *p = s->p;
    rung_find(p, &r, s->a);
    if (!r.name) {
        add_sentence(s, "next rung",
                     r.idle ? arena_printf(s->a, "none: %s would change no kernel", r.idle)
                            : "none: this configuration makes every change of the ladder");
        return;
    }
    const char *text = arena_printf(s->a, "%s (%s)", r.name, r.differs);
    if (r.reason) {
        ADD(s, "next rung", "%s is not available: %s", text, r.reason);
        return;
    }
    if (!r.gone && !r.come && !r.retyped)
        text =
            arena_printf(s->a, "%s: the same %d kernel%s on the same types, launched differently",
                         text, r.stay, plural(r.stay));
    if (r.gone) text = replaced_words(s, text, &r);
    if (r.come && !r.gone)
        text = arena_printf(s->a, "%s: adds %d kernel%s: %s", text, r.come, plural(r.come),
                            ops_words(s, r.come_op, r.come_ops));
    if (r.retyped)
        text =
            arena_printf(s->a, "%s%s%d kernel%s run%s on other types, %s ms%s", text,
                         r.gone || r.come ? "; " : ": ", r.retyped, plural(r.retyped),
                         r.retyped == 1 ? "s" : "", number(s, r.retyped_ms, 3), gain_words(s, &r));
    add_sentence(s, "next rung", text);
}

struct profile_words words_of(const struct profile *p, struct arena *a)
{
    struct profile_words ret = {.word = ARENA_NEW(a, struct profile_word, WORDS_MOST)};
    struct writer s = {p, &ret, a};
    add_time(&s);
    add_events(&s);
    add_others(&s);
    add_dropped(&s);
    add_top(&s);
    add_matmuls(&s);
    add_attention(&s);
    add_host(&s);
    add_threads(&s);
    add_floor(&s);
    add_counters(&s);
    add_communication(&s);
    add_rung(&s);
    return ret;
}
