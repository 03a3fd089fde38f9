#include "report/agree.h"

#include <math.h>

static const double APART = 1.1;

static void compare_times(struct comparison *runs, const struct profile_file *p, struct arena *a)
{
    const struct run *r = &runs->run[p->run];
    double clock = r->figures.ms_median, ratio = p->plain_step_ms.median / clock;
    if (!(ratio > APART || ratio < 1 / APART)) return;
    compare_note(
        runs,
        arena_printf(a,
                     "The clock of %s gives %.4g ms for a step, its profile %.4g ms (without "
                     "profiling, on random tokens): they disagree; the machine was probably busier "
                     "or slower during one of them.",
                     r->name, clock, p->plain_step_ms.median),
        a);
}

/* Their intervals have no speed in common. */
static bool disagree(const struct judgement *x, const struct judgement *y)
{
    if (x->how < JUDGED_APART || y->how < JUDGED_APART) return false;
    return x->verdict.low > y->verdict.high || y->verdict.low > x->verdict.high;
}

void agree_note(struct comparison *runs, const struct profile_file *profile, int profiles,
                const struct changes *change, struct arena *a)
{
    for (int i = 0; i < profiles; i++)
        if (profile[i].run >= 0) compare_times(runs, &profile[i], a);
    for (int i = 1; i < profiles; i++) {
        int run = profile[i].run;
        if (profile[0].run != 0 || run < 1) continue;
        const struct judgement *x = &runs->speed[run], *y = &change[i - 1].speed;
        if (!disagree(x, y)) continue;
        const char *first = runs->run[0].name;
        compare_note(
            runs,
            arena_printf(a,
                         "By the clock of the runs %s %s; by the profiles it %s. They disagree; "
                         "believe neither before both are measured in turns.",
                         runs->run[run].name, judge_words(x, first, a), judge_words(y, first, a)),
            a);
    }
}
