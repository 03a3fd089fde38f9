#include "report/speed.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

/* The plan and the whole environment but its date; NULL: unknown. */
static const char *plan_of(const struct run *r, struct arena *a)
{
    struct str s = {0};
    if (!r->plan.work[0]) return NULL;
    str_append(&s, r->plan.work);
    for (int i = 0; i < r->environments; i++)
        if (strcmp(r->environment[i].key, "date") != 0)
            str_printf(&s, "\n%s=%s", r->environment[i].key, r->environment[i].value);
    const char *text = arena_strdup(a, str_text(&s));
    str_release(&s);
    return text;
}

/* The medians of turns, or the steps that count. */
static struct timed timed_of(const struct run *r, bool turns, struct arena *a)
{
    int first = turns ? 0 : run_warm_steps(r), n = turns ? r->turns : r->steps;
    double *ms = ARENA_NEW(a, double, n + 1);
    struct timed_turn *turn = ARENA_NEW(a, struct timed_turn, n + 1);
    struct timed t = {.ms = ms, .turn = turns ? turn : NULL, .unit = "token"};
    for (int i = first; i < n; i++) {
        if (turns) turn[t.n] = (struct timed_turn){r->turn[i].of, r->turn[i].turn};
        ms[t.n++] = turns ? r->turn[i].ms : r->step[i].ms;
    }
    t.work = r->plan.tokens;
    t.plan = plan_of(r, a);
    t.others = fmax(r->figures.others_busy, r->figures.gauges.others);
    return t;
}

struct judgement speed_of(const struct run *first, const struct run *r, struct arena *a)
{
    struct timed x = timed_of(first, true, a), y = timed_of(r, true, a);
    struct judgement j = judge(&x, &y);
    if (j.how == JUDGED_SAME_PLAN || j.how == JUDGED_IN_TURNS) return j;
    x = timed_of(first, false, a);
    y = timed_of(r, false, a);
    return judge(&x, &y);
}
