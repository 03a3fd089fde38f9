#include "profile/words.h"

#include "backend/backend.h"
#include "base/str.h"
#include "profile/rung.h"

#include <math.h>
#include <string.h>

enum {
    FORWARD = 1 << PHASE_FORWARD,
    BACKWARD = 1 << PHASE_BACKWARD,
    LEARNING = FORWARD | BACKWARD
};

struct saying {
    const struct profile *p;
    struct profile_words *ret;
    struct arena *a;
};

static void say(struct saying *s, const char *about, const char *text)
{
    BUG_IF(s->ret->words == WORDS_MOST, "too many words");
    s->ret->word[s->ret->words++] = (struct profile_word){about, text};
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

/* So many digits, never an exponent. */
static const char *number(struct saying *s, double x, int digits)
{
    char text[32];
    return arena_strdup(s->a, str_number(text, x, digits));
}

/* "1 comes", "2 come" */
static const char *verb_end(int n)
{
    return n == 1 ? "s" : "";
}

/* --- how it was measured ------------------------------------------------------------------------- */

static void say_phases(struct saying *s)
{
    const char *text = "";
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        if (s->p->mean_ms[phase] > 0)
            text = arena_printf(s->a, "%s%s%s %s ms", text, *text ? ", " : "",
                                phase_name((enum phase)phase), number(s, s->p->mean_ms[phase], 4));
    say(s, "phases", *text ? arena_printf(s->a, "of the mean step: %s", text) : text);
}

static void say_time(struct saying *s)
{
    const struct profile *p = s->p;
    const char *spread =
        p->steps > 1 ? arena_printf(s->a, "; mean %s ms, std %s", number(s, p->step_ms.mean, 4),
                                    number(s, p->step_ms.std, 3))
                     : "";
    const char *by = p->by == PROFILE_CLOCK    ? "the host's clock around each kernel"
                     : p->by == PROFILE_EVENTS ? "the device's events, one behind each kernel"
                                               : p->traced_by;
    const char *replay = p->replay ? ", played from a recording" : "";
    say(s, "step",
        arena_printf(
            s->a, "%s ms, the median of %d watched step%s (%s ms of %d unwatched%s)%s; times by %s",
            number(s, p->step_ms.median, 4), p->steps, plural(p->steps),
            number(s, p->plain_ms.median, 4), p->plain_ms.n, replay, spread,
            by ? by : "the device's own record"));
    say_phases(s);
    const char *half = arena_printf(
        s->a,
        p->overhead_low < p->overhead_high
            ? "%.2g %%, half of the pairs of watched and unwatched steps between %.2g and %.2g %%"
            : "%.2g %%, by one pair of a watched and an unwatched step",
        100 * p->overhead, 100 * p->overhead_low, 100 * p->overhead_high);
    bool lost = p->overhead_low < 0;
    say(s, "overhead",
        arena_printf(s->a, "%s%s",
                     lost ? "what watching adds is lost in the spread: " : "watching adds ", half));
}

static void say_events(struct saying *s)
{
    const struct profile *p = s->p;
    if (p->by != PROFILE_EVENTS) return;
    const char *unplayed = p->engine->program.config->plan.replay
                               ? " The unwatched steps were played from a recording, the watched "
                                 "ones cannot be: that is in the overhead."
                               : "";
    say(s, "events",
        arena_printf(s->a,
                     "not by the device's own record: %s. What passes from one kernel's end to the "
                     "next one's counts as the next one's, so gaps are within rows.%s",
                     p->why, unplayed));
}

/* A tenth of a processor is what a system does by itself. A GPU's kernels take no longer for it. */
static void say_others(struct saying *s)
{
    const char *longer = s->p->engine->backend->host_memory ? "times are" : "the host's time is";
    if (s->p->others > 0.1)
        say(s, "others",
            arena_printf(
                s->a, "other programs kept %.2g processor%s busy meanwhile: %s longer than alone",
                s->p->others, s->p->others > 0.95 && s->p->others < 1.05 ? "" : "s", longer));
}

static void say_dropped(struct saying *s)
{
    const struct profile *p = s->p;
    if (!p->dropped && !p->unmatched) return;
    say(s, "dropped",
        arena_printf(s->a,
                     "%lld of the device's activities were lost, %lld are of no known kernel%s%s",
                     (long long)p->dropped, (long long)p->unmatched, p->dropped_why ? ": " : "",
                     p->dropped_why ? p->dropped_why : ""));
}

/* --- what takes the time ------------------------------------------------------------------------- */

/* A group's longest kernel. A device's kernel has its name, whatever its shapes are; what is shown of it may be
 * what others begin with too. */
struct top {
    const char *name, *shown;
    double ms;
    int runs;
};

static bool counts(const struct profile_row *r, unsigned phases)
{
    return r->node >= 0 && phases >> r->phase & 1;
}

/* `name`: of each row. */
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

static void say_top(struct saying *s)
{
    const struct profile *p = s->p;
    const char **name = ARENA_NEW(s->a, const char *, p->rows);
    for (int i = 0; i < p->rows; i++) {
        const struct profile_row *r = &p->row[i];
        name[i] = r->device_kernel ? r->device_kernel : profile_kernel_name(r, s->a);
    }
    struct top forward = top_of(p, FORWARD, name), both = top_of(p, LEARNING, name);
    if (!forward.name) return;
    const char *first =
        arena_printf(s->a, "in forward %s: %d run%s, %.3g %% of it", forward.shown, forward.runs,
                     plural(forward.runs), percent(forward.ms, profile_ms(p, FORWARD)));
    double share = percent(both.ms, profile_ms(p, LEARNING));
    say(s, "top kernel",
        strcmp(forward.name, both.name) == 0
            ? arena_printf(s->a, "%s. With backward it stays on top: %d run%s, %.3g %%", first,
                           both.runs, plural(both.runs), share)
            : arena_printf(s->a, "%s. With backward %s takes its place: %d run%s, %.3g %%", first,
                           both.shown, both.runs, plural(both.runs), share));
}

static double share_of(const struct profile *p, unsigned phases, enum family family)
{
    return percent(profile_family_ms(p, phases, family), profile_ms(p, phases));
}

/* A model may have no products, and a step no backward or no optimizer. */
static void say_products(struct saying *s)
{
    const struct profile *p = s->p;
    double forward = share_of(p, FORWARD, FAMILY_PRODUCTS);
    if (!(forward > 0)) return;
    const char *text = arena_printf(s->a, "matrix products are %.3g %% of forward", forward);
    if (profile_ms(p, BACKWARD) > 0)
        text = arena_printf(s->a, "%s, %.3g %% of forward + backward", text,
                            share_of(p, LEARNING, FAMILY_PRODUCTS));
    if (profile_family_ms(p, PHASES_ALL, FAMILY_OPTIMIZER) > 0)
        text = arena_printf(
            s->a, "%s, %.3g %% of a whole step with AdamW, of which the optimizer is %.3g %%", text,
            share_of(p, PHASES_ALL, FAMILY_PRODUCTS), share_of(p, PHASES_ALL, FAMILY_OPTIMIZER));
    say(s, "products", text);
}

/* --- attention ----------------------------------------------------------------------------------- */

struct work {
    double ms, flops;
};

static bool in_range(const struct profile_row *r, const char *word)
{
    for (int i = 0; i < r->range.words; i++)
        if (!strcmp(r->range.word[i], word)) return true;
    return false;
}

/* Of a family, among what is between q, k, v and the projection. Forward's work that backward does again is not
 * backward's own. */
static struct work work_inside(const struct profile *p, enum phase phase, enum family family)
{
    struct work sum = {0};
    for (int i = 0; i < p->rows; i++) {
        const struct profile_row *r = &p->row[i];
        const char *last = r->range.words ? r->range.word[r->range.words - 1] : "";
        bool inside = strcmp(last, "q, k, v") != 0 && strcmp(last, "projection") != 0;
        if (r->node < 0 || r->phase != phase || r->family != family || !inside) continue;
        if (!in_range(r, "attention") || in_range(r, "computed again")) continue;
        sum.ms += r->ms;
        sum.flops += r->cost.flops * r->runs / p->steps;
    }
    return sum;
}

static const char *softmax_words(struct saying *s, enum phase phase, int products)
{
    struct work softmax = work_inside(s->p, phase, FAMILY_SOFTMAX);
    struct work product = work_inside(s->p, phase, FAMILY_PRODUCTS);
    if (!(softmax.ms > 0) || !(product.ms > 0)) return NULL;
    return arena_printf(s->a,
                        "%s: softmax %s ms beside %s ms of the %d products, %s times the "
                        "time for %s times the FLOPs",
                        phase_name(phase), number(s, softmax.ms, 3), number(s, product.ms, 3),
                        products, number(s, softmax.ms / product.ms, 3),
                        number(s, softmax.flops / product.flops, 3));
}

/* Kernels of a step; of an operator there may be several. */
static int family_runs(const struct profile *p, unsigned phases, enum family family)
{
    int runs = 0;
    for (int i = 0; i < p->rows; i++)
        if (counts(&p->row[i], phases) && p->row[i].family == family) runs += p->row[i].runs;
    return (runs + p->steps / 2) / p->steps;
}

static void say_flash(struct saying *s, double ms)
{
    int runs = family_runs(s->p, LEARNING, FAMILY_ATTENTION);
    say(s, "attention",
        arena_printf(s->a,
                     "flash: one operator each way, %d kernel%s of a step, %.3g %% of forward + "
                     "backward; --flash=false shows softmax beside its two products",
                     runs, plural(runs), percent(ms, profile_ms(s->p, LEARNING))));
}

static void say_attention(struct saying *s)
{
    const char *forward = softmax_words(s, PHASE_FORWARD, 2);
    const char *backward = softmax_words(s, PHASE_BACKWARD, 4);
    double flash = profile_family_ms(s->p, LEARNING, FAMILY_ATTENTION);
    if (forward && backward)
        say(s, "attention", arena_printf(s->a, "inside slow attention, %s; %s", forward, backward));
    else if (forward)
        say(s, "attention", arena_printf(s->a, "inside slow attention, %s", forward));
    else if (flash > 0)
        say_flash(s, flash);
}

/* --- what is lost -------------------------------------------------------------------------------- */

static void say_host(struct saying *s)
{
    const struct profile *p = s->p;
    double idle = profile_family_ms(p, PHASES_ALL, FAMILY_IDLE), step = p->step_ms.mean;
    const char *gaps =
        arena_printf(s->a, "%.3g %% of the mean step in %lld gap%s, %s µs each on average",
                     percent(idle, step), (long long)p->gaps, plural((int)p->gaps),
                     number(s, p->gaps ? 1e3 * idle / (double)p->gaps : 0, 3));
    if (p->engine->backend->host_memory) {
        say(s, "idle", arena_printf(s->a, "between kernels: %s", gaps));
        return;
    }
    double device = p->plain_ms.median;
    say(s, "host",
        arena_printf(s->a, "the host takes %s ms to start a step of %s ms (medians)%s",
                     number(s, p->host_ms, 3), number(s, device, 4),
                     p->host_ms > 0.9 * device ? ": the device waits for it"
                                               : ": it is ahead of the device"));
    if (p->by == PROFILE_TRACE)
        say(s, "idle",
            arena_printf(s->a, "the device: %s%s", gaps,
                         p->dropped ? ", idle or not recorded: some of what it did was lost" : ""));
}

static void say_threads(struct saying *s)
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
    const char *library =
        unseen > 0
            ? arena_printf(
                  s->a,
                  "; how the library shares its products (%.3g %% of the step) cannot be seen",
                  percent(unseen, p->step_ms.mean))
            : "";
    if (p->threads == 1)
        say(s, "threads", "one: there is nobody to wait for");
    else if (seen > 0)
        say(s, "threads",
            arena_printf(s->a,
                         "each of %d works %.3g %% of the time of Strobe's own kernels (%s ms); "
                         "the busiest %.3g %% longer than the mean of them%s",
                         p->threads, percent(busy, seen), number(s, seen, 3),
                         percent(busiest - busy, busy), library));
}

/* "1.123 TFLOP", "64.2 MFLOP" */
static const char *amount(struct saying *s, double x, const char *unit)
{
    static const char *const thousands[] = {"", "k", "M", "G", "T", "P"};
    int i = 0;
    for (; x >= 1000 && i < COUNT_OF(thousands) - 1; i++) x /= 1000;
    return arena_printf(s->a, "%.4g %s%s", x, thousands[i], unit);
}

static void say_floor(struct saying *s)
{
    const struct profile *p = s->p;
    struct profile_groups g;
    profile_groups(p, BY_PHASE, PHASES_ALL, &g, s->a);
    if (!(g.floor_ms > 0)) return;
    say(s, "floor",
        arena_printf(s->a,
                     "%s and %s of a step at this machine's ceilings take %s ms: the mean step "
                     "is %s times that",
                     amount(s, g.flops, "FLOP"), amount(s, g.bytes, "B"), number(s, g.floor_ms, 4),
                     number(s, p->step_ms.mean / g.floor_ms, 3)));
}

/* --- the ladder ---------------------------------------------------------------------------------- */

static const char *ops_words(struct saying *s, const struct rung_op *op, int n)
{
    const char *words = "";
    for (int i = 0; i < n; i++) {
        const char *ms = op[i].ms > 0 ? arena_printf(s->a, " (%s ms)", number(s, op[i].ms, 2)) : "";
        words = arena_printf(s->a, "%s%s%d %s%s", words, i ? ", " : "", op[i].runs,
                             op_def(op[i].op)->name, ms);
    }
    return n == RUNG_OPS ? arena_printf(s->a, "%s ...", words) : words;
}

/* What goes is a saving only where nothing takes its place. */
static const char *replaced_words(struct saying *s, const char *text, const struct rung *r)
{
    const char *ms = number(s, r->gone_ms, 3), *gone = ops_words(s, r->gone_op, r->gone_ops);
    double share = percent(r->gone_ms, s->p->step_ms.mean);
    if (!r->come)
        return arena_printf(s->a, "%s: %d kernel%s of a step go%s, %s ms (%.3g %%): %s", text,
                            r->gone, plural(r->gone), r->gone == 1 ? "es" : "", ms, share, gone);
    return arena_printf(s->a,
                        "%s: %s instead of %d kernel%s that take%s %s ms of a step (%.3g %%): %s; "
                        "what the new one%s take%s is not known before %s",
                        text, ops_words(s, r->come_op, r->come_ops), r->gone, plural(r->gone),
                        verb_end(r->gone), ms, share, gone, plural(r->come), verb_end(r->come),
                        r->come == 1 ? "it runs" : "they run");
}

/* Of products by their peaks; of all else nobody knows. */
static const char *gain_words(struct saying *s, const struct rung *r)
{
    if (!(r->gain_ms > 0)) return "; how much faster these are then is not estimated";
    return arena_printf(s->a,
                        "; %s ms of them are products, at most %s ms shorter by the ratio of the "
                        "measured peaks; how much faster the others are is not estimated",
                        number(s, r->products_ms, 3), number(s, r->gain_ms, 3));
}

static void say_rung(struct saying *s)
{
    struct rung r;
    const struct profile *p = s->p;
    rung_find(p, &r, s->a);
    if (!r.name) {
        say(s, "next rung",
            r.idle ? arena_printf(s->a, "none: %s would change no kernel", r.idle)
                   : "none: every change of the ladder is made");
        return;
    }
    const char *text = arena_printf(s->a, "%s (%s)", r.name, r.differs);
    if (r.reason) {
        say(s, "next rung", arena_printf(s->a, "%s is not to be had: %s", text, r.reason));
        return;
    }
    if (!r.gone && !r.come && !r.retyped)
        text = arena_printf(s->a, "%s: the same %d kernel%s on the same types, run another way",
                            text, r.stay, plural(r.stay));
    if (r.gone) text = replaced_words(s, text, &r);
    if (r.come && !r.gone)
        text = arena_printf(s->a, "%s: %d come%s: %s", text, r.come, verb_end(r.come),
                            ops_words(s, r.come_op, r.come_ops));
    if (r.retyped)
        text = arena_printf(s->a, "%s%s%d stay%s, on other types, %s ms%s", text,
                            r.gone || r.come ? "; " : ": ", r.retyped, verb_end(r.retyped),
                            number(s, r.retyped_ms, 3), gain_words(s, &r));
    say(s, "next rung", text);
}

void words_of(const struct profile *p, struct profile_words *ret, struct arena *a)
{
    struct saying s = {p, ret, a};
    *ret = (struct profile_words){0};
    say_time(&s);
    say_events(&s);
    say_others(&s);
    say_dropped(&s);
    say_top(&s);
    say_products(&s);
    say_attention(&s);
    say_host(&s);
    say_threads(&s);
    say_floor(&s);
    say_rung(&s);
}
