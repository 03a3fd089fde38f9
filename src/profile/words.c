#include "profile/words.h"

#include "backend/backend.h"
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

/* --- how it was measured ------------------------------------------------------------------------- */

static void say_time(struct saying *s)
{
    const struct profile *p = s->p;
    const char *spread = p->steps > 1 ? arena_printf(s->a, ", std %.3g", p->step_ms.std) : "";
    const char *by = p->by == PROFILE_CLOCK    ? "the host's clock around each kernel"
                     : p->by == PROFILE_EVENTS ? "the device's events, one behind each kernel"
                                               : p->traced_by;
    const char *replay = p->replay ? ", played from a recording" : "";
    say(s, "step",
        arena_printf(
            s->a,
            "%.4g ms, the median of %d watched step%s%s (%.4g ms of unwatched ones%s); times by %s",
            p->step_ms.median, p->steps, plural(p->steps), spread, p->plain_ms.median, replay,
            by ? by : "the device's own record"));
    say(s, "phases",
        arena_printf(s->a, "forward %.4g ms, backward %.4g ms, update %.4g ms",
                     p->mean_ms[PHASE_FORWARD], p->mean_ms[PHASE_BACKWARD],
                     p->mean_ms[PHASE_UPDATE]));
    const char *half = arena_printf(
        s->a,
        "%.2g %%, half of the pairs of a watched and an unwatched step between %.2g and %.2g %%",
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
    const char *unplayed = p->engine->config->plan.replay
                               ? " The unwatched steps were played from a recording, the watched "
                                 "ones cannot be: that is in the overhead."
                               : "";
    say(s, "events",
        arena_printf(s->a,
                     "not by the device's own record: %s. What passes from one kernel's end to the "
                     "next one's counts as the next one's, so gaps are within rows.%s",
                     p->why, unplayed));
}

/* A tenth of a processor is what a system does by itself. */
static void say_others(struct saying *s)
{
    if (s->p->others > 0.1)
        say(s, "others",
            arena_printf(s->a,
                         "other programs kept %.2g processors busy meanwhile: times are longer "
                         "than they would be alone",
                         s->p->others));
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

/* A group's longest kernel. A device's kernel has its name, whatever its shapes are. */
struct top {
    const char *name;
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
        struct top sum = {.name = name[i]};
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
        name[i] = r->device_short ? r->device_short : profile_kernel_name(r, s->a);
    }
    struct top forward = top_of(p, FORWARD, name), both = top_of(p, LEARNING, name);
    if (!forward.name) return;
    const char *first =
        arena_printf(s->a, "in forward %s: %d run%s, %.3g %% of it", forward.name, forward.runs,
                     plural(forward.runs), percent(forward.ms, profile_ms(p, FORWARD)));
    double share = percent(both.ms, profile_ms(p, LEARNING));
    say(s, "top kernel",
        strcmp(forward.name, both.name) == 0
            ? arena_printf(s->a, "%s. With backward it stays on top: %d run%s, %.3g %%", first,
                           both.runs, plural(both.runs), share)
            : arena_printf(s->a, "%s. With backward %s takes its place: %d run%s, %.3g %%", first,
                           both.name, both.runs, plural(both.runs), share));
}

static double share_of(const struct profile *p, unsigned phases, enum family family)
{
    return percent(profile_family_ms(p, phases, family), profile_ms(p, phases));
}

static void say_products(struct saying *s)
{
    const struct profile *p = s->p;
    say(s, "products",
        arena_printf(s->a,
                     "matrix products are %.3g %% of forward, %.3g %% of forward + backward, %.3g "
                     "%% of a whole step with AdamW, of which the optimizer is %.3g %%",
                     share_of(p, FORWARD, FAMILY_PRODUCTS), share_of(p, LEARNING, FAMILY_PRODUCTS),
                     share_of(p, PHASES_ALL, FAMILY_PRODUCTS),
                     share_of(p, PHASES_ALL, FAMILY_OPTIMIZER)));
}

/* --- attention ----------------------------------------------------------------------------------- */

struct work {
    double ms, flops;
};

static bool in_attention(const struct profile_row *r)
{
    for (int i = 0; i < r->range.words; i++)
        if (!strcmp(r->range.word[i], "attention")) return true;
    return false;
}

/* Of a family, among what is between q, k, v and the projection. */
static struct work work_inside(const struct profile *p, enum phase phase, enum family family)
{
    struct work sum = {0};
    for (int i = 0; i < p->rows; i++) {
        const struct profile_row *r = &p->row[i];
        const char *last = r->range.words ? r->range.word[r->range.words - 1] : "";
        bool inside = strcmp(last, "q, k, v") != 0 && strcmp(last, "projection") != 0;
        if (r->node < 0 || r->phase != phase || r->family != family || !inside) continue;
        if (!in_attention(r)) continue;
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
                        "%s: softmax %.3g ms beside %.3g ms of the %d products, %.3g times the "
                        "time for %.3g times the FLOPs",
                        phase_name(phase), softmax.ms, product.ms, products,
                        softmax.ms / product.ms, softmax.flops / product.flops);
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
        say(s, "attention",
            arena_printf(s->a,
                         "flash: one kernel, %.3g %% of forward + backward; --flash=false shows "
                         "softmax beside its two products",
                         percent(flash, profile_ms(s->p, LEARNING))));
}

/* --- what is lost -------------------------------------------------------------------------------- */

static void say_host(struct saying *s)
{
    const struct profile *p = s->p;
    double idle = profile_family_ms(p, PHASES_ALL, FAMILY_IDLE), step = p->step_ms.mean;
    const char *gaps = arena_printf(
        s->a, "%.3g %% of the step in %lld gaps, %.3g µs each on average", percent(idle, step),
        (long long)p->gaps, p->gaps ? 1e3 * idle / (double)p->gaps : 0);
    if (p->engine->backend->host_memory) {
        say(s, "idle", arena_printf(s->a, "between kernels: %s", gaps));
        return;
    }
    double device = p->plain_ms.median;
    say(s, "host",
        arena_printf(s->a, "the host takes %.3g ms to start a step of %.4g ms%s", p->host_ms,
                     device,
                     p->host_ms > 0.9 * device ? ": the device waits for it"
                                               : ": it is ahead of the device"));
    if (p->by == PROFILE_TRACE) say(s, "idle", arena_printf(s->a, "the device: %s", gaps));
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
                         "each of %d works %.3g %% of the time of Strobe's own kernels (%.3g ms); "
                         "the busiest %.3g %% longer than the mean%s",
                         p->threads, percent(busy, seen), seen, percent(busiest - busy, busy),
                         library));
}

static void say_floor(struct saying *s)
{
    const struct profile *p = s->p;
    struct profile_groups g;
    profile_groups(p, BY_PHASE, PHASES_ALL, &g, s->a);
    if (!(g.floor_ms > 0)) return;
    say(s, "floor",
        arena_printf(s->a,
                     "%.4g GFLOP and %.4g MB of a step at this machine's ceilings take %.4g ms: "
                     "the step is %.3g times that",
                     1e-9 * g.flops, 1e-6 * g.bytes, g.floor_ms, p->step_ms.mean / g.floor_ms));
}

/* --- the ladder ---------------------------------------------------------------------------------- */

static const char *ops_words(struct saying *s, const struct rung_op *op, int n)
{
    const char *words = "";
    for (int i = 0; i < n; i++) {
        const char *ms = op[i].ms > 0 ? arena_printf(s->a, " (%.2g ms)", op[i].ms) : "";
        words = arena_printf(s->a, "%s%s%d %s%s", words, i ? ", " : "", op[i].runs,
                             op_def(op[i].op)->name, ms);
    }
    return n == RUNG_OPS ? arena_printf(s->a, "%s ...", words) : words;
}

static void say_rung(struct saying *s)
{
    struct rung r;
    const struct profile *p = s->p;
    rung_find(p, &r, s->a);
    if (!r.name) {
        say(s, "next rung", "none: every change of the ladder is made");
        return;
    }
    const char *text = arena_printf(s->a, "%s (%s)", r.name, r.differs);
    if (r.reason) {
        say(s, "next rung", arena_printf(s->a, "%s is not to be had: %s", text, r.reason));
        return;
    }
    if (!r.gone && !r.come && !r.retyped)
        text = arena_printf(s->a, "%s: the same %d kernels on the same types, run another way",
                            text, r.stay);
    if (r.gone)
        text =
            arena_printf(s->a, "%s: %d kernel%s of a step %s, %.3g ms (%.3g %%): %s", text, r.gone,
                         plural(r.gone), r.gone == 1 ? "goes" : "go", r.gone_ms,
                         percent(r.gone_ms, p->step_ms.mean), ops_words(s, r.gone_op, r.gone_ops));
    if (r.come)
        text = arena_printf(s->a, "%s%s%d %s: %s", text, r.gone ? "; " : ": ", r.come,
                            r.come == 1 ? "comes" : "come", ops_words(s, r.come_op, r.come_ops));
    if (r.retyped)
        text = arena_printf(s->a, "%s%s%d on other types, %.3g ms", text,
                            r.gone || r.come ? "; " : ": ", r.retyped, r.retyped_ms);
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
