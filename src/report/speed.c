#include "report/speed.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

const double SPEED_BUSY_SHARE = 0.1;

static bool same_environment(const struct run *x, const struct run *y)
{
    for (int i = 0; i < x->environments; i++) {
        const char *key = x->environment[i].key;
        if (!strcmp(key, "date")) continue;
        if (!str_same(x->environment[i].value, run_pair_find(y->environment, y->environments, key)))
            return false;
    }
    return x->environments == y->environments;
}

static bool same_work(const struct run *x, const struct run *y)
{
    return x->plan.work && y->plan.work && !strcmp(x->plan.work, y->plan.work) &&
           same_environment(x, y);
}

/* Pairs of turns with one number of one `strobe compare`. Both lists ascend within it. */
static struct verdict in_turns(const struct run *x, const struct run *y, struct arena *a)
{
    double *first = ARENA_NEW(a, double, x->turns + 1),
           *second = ARENA_NEW(a, double, x->turns + 1);
    int n = 0;
    for (int i = 0, k = 0; i < x->turns && k < y->turns;) {
        const struct run_turn *t = &x->turn[i], *u = &y->turn[k];
        bool before = t->of != u->of ? t->of < u->of : t->turn < u->turn;
        if (t->of == u->of && t->turn == u->turn) {
            first[n] = t->ms / x->plan.tokens_per_step;
            second[n++] = u->ms / y->plan.tokens_per_step;
            i++, k++;
        } else if (before) {
            i++;
        } else {
            k++;
        }
    }
    return n ? verdict_of_pairs(first, second, n) : (struct verdict){0};
}

/* Times per token of the steps that count; returns their number. */
static int times_of(const struct run *r, double *ret)
{
    int n = 0;
    for (int i = run_warm_steps(r); i < r->steps; i++)
        if (isfinite(r->step[i].ms)) ret[n++] = r->step[i].ms / r->plan.tokens_per_step;
    return n;
}

static struct verdict apart(const struct run *x, const struct run *y, struct arena *a)
{
    double *first = ARENA_NEW(a, double, x->steps + 1),
           *second = ARENA_NEW(a, double, y->steps + 1);
    return verdict_of_series(first, times_of(x, first), second, times_of(y, second));
}

struct speed speed_of(const struct run *first, const struct run *r, struct arena *a)
{
    struct speed s = {0};
    if (!(first->plan.tokens_per_step > 0) || !(r->plan.tokens_per_step > 0)) return s;
    if (same_work(first, r)) return (struct speed){.how = SPEED_SAME_WORK};
    s.verdict = in_turns(first, r, a);
    if (s.verdict.pairs) {
        s.how = SPEED_IN_TURNS;
        return s;
    }
    s.verdict = apart(first, r, a);
    s.others = fmax(first->figures.others_busy, r->figures.others_busy);
    s.how = s.verdict.pairs < VERDICT_FEW ? SPEED_UNKNOWN
            : s.others > SPEED_BUSY_SHARE ? SPEED_BUSY
                                          : SPEED_APART;
    return s;
}

static const char *uncertain_words(const struct verdict *v, struct arena *a)
{
    if (!isfinite(v->high) || !(v->low > 0)) return "too few times";
    return arena_printf(a, "%.2f to %.2f times as fast", v->low, v->high);
}

const char *speed_words(const struct speed *s, const char *first, struct arena *a)
{
    const struct verdict *v = &s->verdict;
    bool slow = v->kind == VERDICT_SLOWER;
    const char *how =
        s->how == SPEED_IN_TURNS ? arena_printf(a, "in %d turns", v->pairs) : "measured apart";
    if (s->how == SPEED_UNKNOWN) return NULL;
    if (s->how == SPEED_SAME_WORK)
        return arena_printf(a, "has the same plan as %s, so their speeds are not compared", first);
    if (s->how == SPEED_BUSY)
        return arena_printf(a,
                            "cannot be compared in speed with %s, because other programs used %.0f "
                            "%% of the processors and the two were not measured in turns",
                            first, 100 * s->others);
    if (v->kind == VERDICT_SAME)
        return arena_printf(a, "is as fast as %s, within %.0f %% (%s)", first,
                            100 * (VERDICT_LEAST - 1), how);
    if (v->kind == VERDICT_UNCERTAIN && s->how == SPEED_IN_TURNS && v->pairs < VERDICT_PAIRS)
        how =
            arena_printf(a, "in %d turns of the %d that a verdict needs", v->pairs, VERDICT_PAIRS);
    if (v->kind == VERDICT_UNCERTAIN)
        return arena_printf(a, "cannot be told apart in speed from %s (%s, %s)", first,
                            uncertain_words(v, a), how);
    return arena_printf(a, "is %.2f times as %s as %s (%.2f to %.2f, %s)",
                        slow ? 1 / v->speed : v->speed, slow ? "slow" : "fast", first,
                        slow ? 1 / v->high : v->low, slow ? 1 / v->low : v->high, how);
}

const char *speed_cell(const struct speed *s, struct arena *a)
{
    if (s->how == SPEED_UNKNOWN) return NULL;
    if (s->how == SPEED_SAME_WORK) return "same plan";
    if (s->how == SPEED_BUSY || s->verdict.kind == VERDICT_UNCERTAIN)
        return verdict_name(VERDICT_UNCERTAIN);
    if (s->verdict.kind == VERDICT_SAME) return verdict_name(VERDICT_SAME);
    return arena_printf(a, "%.2f x", s->verdict.speed);
}
