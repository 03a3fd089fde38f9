#include "report/gate.h"

#include "base/str.h"
#include "present/markup.h"

#include <jansson.h>
#include <math.h>

const char *gate_outcome_name(enum gate_outcome outcome)
{
    static const char *const names[] = {"passed", "cannot tell", "regression"};
    return names[outcome];
}

static enum gate_outcome outcome_of(const struct judgement *s)
{
    if (s->how == JUDGED_SAME_PLAN) return GATE_PASSED;
    if (s->how == JUDGED_NOT || s->verdict.kind == VERDICT_UNCERTAIN) return GATE_UNCERTAIN;
    return s->verdict.kind == VERDICT_SLOWER ? GATE_REGRESSION : GATE_PASSED;
}

static void add_outcome(struct gate *g, const char *subject, const char *what,
                        enum gate_outcome outcome, const char *text)
{
    g->one[g->n++] = (struct gate_case){subject, what, outcome, text};
    if (outcome > g->outcome) g->outcome = outcome;
}

static void add_speed(struct gate *g, const char *subject, const char *what,
                      const struct judgement *s, struct arena *a)
{
    const char *words = judge_words(s, g->baseline, a);
    if (!words) words = "has too few steps to tell its speed";
    add_outcome(g, subject, what, outcome_of(s), arena_printf(a, "%s %s.", subject, words));
}

static void add_memory(struct gate *g, const char *subject, double before, double after,
                       struct arena *a)
{
    char was[32], is[32];
    if (!(before > 0 && after > 0)) return;
    add_outcome(g, subject, "memory",
                after > before * VERDICT_LEAST ? GATE_REGRESSION : GATE_PASSED,
                arena_printf(a, "%s has %s of planned memory, %s has %s (%+.1f %%).", subject,
                             str_bytes(is, after), g->baseline, str_bytes(was, before),
                             100 * (after / before - 1)));
}

/* A NaN is a regression, whatever the baseline did; a run that did not finish tells less. */
static void add_end(struct gate *g, const struct run *r, struct arena *a)
{
    const char *text = compare_end(r, a);
    if (text)
        add_outcome(g, r->name, "end", r->figures.nan_iter >= 0 ? GATE_REGRESSION : GATE_UNCERTAIN,
                    text);
}

struct gate gate_of(const struct comparison *runs, const struct changes *change, int changes,
                    struct arena *a)
{
    struct gate g = {.one = ARENA_NEW(a, struct gate_case, 3 * (runs->runs + changes) + 1)};
    for (int r = 1; r < runs->runs; r++) {
        const struct run *first = &runs->run[0], *run = &runs->run[r];
        g.baseline = first->name;
        if (r == 1) add_end(&g, first, a);
        add_end(&g, run, a);
        add_speed(&g, run->name, "speed", &runs->speed[r], a);
        add_memory(&g, run->name, first->plan.total, run->plan.total, a);
    }
    for (int i = 0; i < changes; i++) {
        const struct changes *c = &change[i];
        if (runs->runs && c->before->run != 0) continue; /* the baseline has no profile */
        g.baseline = c->before->name;
        add_speed(&g, c->after->name, "profiled step", &c->speed, a);
        if (!runs->runs || c->before->run < 0 || c->after->run < 0) /* else it is that of runs */
            add_memory(&g, c->after->name, c->before->memory.total, c->after->memory.total, a);
    }
    return g;
}

json_t *gate_json(const struct gate *g)
{
    json_t *all = json_array();
    for (int i = 0; i < g->n; i++) {
        const struct gate_case *c = &g->one[i];
        json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:s}", "subject", c->subject, "what",
                                             c->what, "outcome", gate_outcome_name(c->outcome),
                                             "text", c->text));
    }
    return json_pack("{s:s, s:s, s:o}", "baseline", g->baseline, "outcome",
                     gate_outcome_name(g->outcome), "cases", all);
}

void gate_junit(const struct gate *g, struct markup *m)
{
    int failures = 0, skipped = 0;
    for (int i = 0; i < g->n; i++) {
        failures += g->one[i].outcome == GATE_REGRESSION;
        skipped += g->one[i].outcome == GATE_UNCERTAIN;
    }
    markup_printf(m, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    markup_printf(m,
                  "<testsuite name=\"strobe report\" tests=\"%d\" failures=\"%d\" skipped=\"%d\" "
                  "errors=\"0\">\n",
                  g->n, failures, skipped);
    for (int i = 0; i < g->n; i++) {
        const struct gate_case *c = &g->one[i];
        markup_printf(m, "  <testcase classname=\"%s\" name=\"%s\">\n", c->subject, c->what);
        if (c->outcome == GATE_REGRESSION)
            markup_printf(m, "    <failure message=\"%s\"/>\n", c->text);
        else if (c->outcome == GATE_UNCERTAIN)
            markup_printf(m, "    <skipped message=\"%s\"/>\n", c->text);
        else
            markup_printf(m, "    <system-out>%s</system-out>\n", c->text);
        markup_printf(m, "  </testcase>\n");
    }
    markup_printf(m, "</testsuite>\n");
}
