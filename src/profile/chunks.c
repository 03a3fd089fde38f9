/* Chunks of steps, which verdicts compare: the steps of a turn, or neighboring steps. */
#include "base/clock.h"
#include "base/turn.h"
#include "profile/collect.h"

#include <math.h>

/* The turn before the first step warms up and is no chunk. */
static void note(struct profile *p, int64_t turn, int plain, int steps)
{
    const struct profile_chunk *last = p->chunks ? &p->chunk[p->chunks - 1] : NULL;
    if (steps <= (last ? last->end : 0) || p->chunks == CHUNKS_MOST) return;
    p->chunk[p->chunks++] = (struct profile_chunk){turn, plain, steps};
}

enum status chunks_take_turn(const struct profile_options *o, struct profile *p, int plain,
                             int steps, int64_t left, double ms, struct arena *a)
{
    struct turn_report report = {left, ms};
    if (!p->chunk) p->chunk = ARENA_NEW(a, struct profile_chunk, CHUNKS_MOST);
    note(p, p->turn.number, plain, steps);
    if (left == 0) return ST_OK;
    struct host_work before = host_work_now();
    int64_t start = clock_ns();
    TRY(turn_wait(o->turns, &report, &p->turn));
    struct host_work after = host_work_now();
    p->away_s += 1e-3 * clock_ms(start, clock_ns());
    p->away.all += after.all - before.all;
    p->away.own += after.own - before.own;
    p->turns_of = p->turn.of;
    return ST_OK;
}

void chunks_divide(struct profile *p, int plain, struct arena *a)
{
    int n = p->steps < CHUNKS_APART ? p->steps : CHUNKS_APART;
    p->chunk = ARENA_NEW(a, struct profile_chunk, n);
    for (int i = 0; i < n; i++)
        note(p, i, (int)((int64_t)plain * (i + 1) / n), (int)((int64_t)p->steps * (i + 1) / n));
}

double *profile_chunks_ms(const struct profile *p, const double *step_ms, bool plain,
                          struct arena *a)
{
    double *ms = ARENA_NEW(a, double, p->chunks);
    for (int i = 0, begin = 0; i < p->chunks; i++) {
        int end = plain ? p->chunk[i].plain_end : p->chunk[i].end;
        ms[i] = end > begin ? stats_of(step_ms + begin, end - begin).median : NAN;
        begin = end;
    }
    return ms;
}
