#include "base/judge.h"

#include "base/load.h"
#include "base/str.h"

#include <math.h>

/* The times per unit of work of all turns that both series have; returns the number of pairs. */
static int pairs_of(const struct timed *x, const struct timed *y, double *ret_first,
                    double *ret_second)
{
    int n = 0;
    for (int i = 0, k = 0; x->turn && y->turn && i < x->n && k < y->n;) {
        const struct timed_turn *t = &x->turn[i], *u = &y->turn[k];
        double later = t->of == u->of ? t->number - u->number : t->of - u->of;
        if (later == 0) {
            ret_first[n] = x->ms[i++] / x->work;
            ret_second[n++] = y->ms[k++] / y->work;
        } else if (later < 0) {
            i++;
        } else {
            k++;
        }
    }
    return n;
}

static void per_unit(const struct timed *t, double *ret)
{
    for (int i = 0; i < t->n; i++) ret[i] = t->ms[i] / t->work;
}

struct judgement judge(const struct timed *x, const struct timed *y)
{
    struct judgement j = {0};
    struct arena scratch = {0};
    if (!x->n || !y->n || !(x->work > 0 && y->work > 0) || !str_same(x->unit, y->unit)) return j;
    if (x->plan && str_same(x->plan, y->plan)) return (struct judgement){.how = JUDGED_SAME_PLAN};
    double *first = ARENA_NEW(&scratch, double, x->n), *second = ARENA_NEW(&scratch, double, y->n);
    int pairs = pairs_of(x, y, first, second);
    if (x->work != y->work) j.per = x->unit;
    if (pairs) {
        j.how = JUDGED_IN_TURNS;
        j.verdict = verdict_of_pairs(first, second, pairs);
    } else {
        per_unit(x, first);
        per_unit(y, second);
        j.verdict = verdict_of_series(first, x->n, second, y->n);
        bool busy = x->others > LOAD_BUSY || y->others > LOAD_BUSY;
        if (j.verdict.pairs >= VERDICT_FEW) j.how = busy ? JUDGED_BUSY : JUDGED_APART;
        if (j.how == JUDGED_BUSY) j.verdict.kind = VERDICT_UNCERTAIN;
    }
    arena_release(&scratch);
    return j;
}

const struct timed_turn *timed_rounds(int n, struct arena *a)
{
    struct timed_turn *turn = ARENA_NEW(a, struct timed_turn, n + 1);
    for (int i = 0; i < n; i++) turn[i].number = i;
    return turn;
}

/* --- in words --------------------------------------------------------------------------------- */

const char *judge_words(const struct judgement *j, const char *first, struct arena *a)
{
    const struct verdict *v = &j->verdict;
    bool slow = v->kind == VERDICT_SLOWER;
    const char *per = j->per ? arena_printf(a, " per %s", j->per) : "";
    const char *how =
        j->how == JUDGED_IN_TURNS ? arena_printf(a, "in %d turns", v->pairs) : "measured apart";
    if (j->how == JUDGED_NOT) return NULL;
    if (j->how == JUDGED_SAME_PLAN)
        return arena_printf(a, "has the same plan as %s, so their speeds are not compared", first);
    if (j->how == JUDGED_BUSY)
        return arena_printf(a,
                            "cannot be compared in speed with %s, because other programs used the "
                            "machine meanwhile and the two were not measured in turns",
                            first);
    if (v->kind == VERDICT_SAME)
        return arena_printf(a, "is as fast%s as %s, within %.0f %% (%s)", per, first,
                            100 * (VERDICT_LEAST - 1), how);
    if (v->kind == VERDICT_UNCERTAIN && j->how == JUDGED_IN_TURNS && v->pairs < VERDICT_PAIRS)
        how = arena_printf(a, "%d turn%s measured; a verdict needs %d", v->pairs,
                           v->pairs == 1 ? " was" : "s were", VERDICT_PAIRS);
    if (v->kind == VERDICT_UNCERTAIN && !(isfinite(v->high) && v->low > 0))
        return arena_printf(a, "cannot be told apart in speed%s from %s (%s%s)", per, first,
                            j->how == JUDGED_IN_TURNS ? "" : "too few times, ", how);
    if (v->kind == VERDICT_UNCERTAIN)
        return arena_printf(a,
                            "cannot be told apart in speed%s from %s (%.2f to %.2f times as fast, "
                            "%s)",
                            per, first, v->low, v->high, how);
    return arena_printf(a, "is %.2f times as %s%s as %s (%.2f to %.2f, %s)",
                        slow ? 1 / v->speed : v->speed, slow ? "slow" : "fast", per, first,
                        slow ? 1 / v->high : v->low, slow ? 1 / v->low : v->high, how);
}

const char *judge_name(const struct judgement *j)
{
    return j->how == JUDGED_SAME_PLAN ? "same plan" : verdict_name(j->verdict.kind);
}

const char *judge_cell(const struct judgement *j, struct arena *a)
{
    if (j->how == JUDGED_NOT) return NULL;
    if (j->verdict.kind == VERDICT_FASTER || j->verdict.kind == VERDICT_SLOWER)
        return arena_printf(a, "%.2f x", j->verdict.speed);
    return judge_name(j);
}
