#include "measure/rounds.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/interrupt.h"

/* Minimum duration of a sample. Reading the host clock takes less than a hundredth of this time. */
static const double SAMPLE_MS = 0.1;
enum { CALLS_MOST = 1000 };
static const double SLOW_MS = 500; /* a call that takes longer ends the warm-up */

struct timing {
    const struct rounds *r;
    struct arena *a;
    double **ms; /* per contender: samples x ROUNDS_PARTS */
    int **round; /* of each sample */
    double done_ms, expected_ms;
    bool known; /* all contenders are warm, so expected_ms is known */
};

static enum status sample(struct timing *t, struct contender *c, double *ret_ms)
{
    double ms[ROUNDS_PARTS] = {0};
    TRY(c->sample(c->user, c->calls, ms));
    for (int p = 0; p < c->parts; p++) {
        ret_ms[p] = ms[p];
        t->done_ms += ms[p] * c->calls;
    }
    if (t->r->each) t->r->each(t->r->user, t->done_ms, t->known ? t->expected_ms : 0);
    return ST_OK;
}

static double sum(const double *ms, int parts)
{
    double all = 0;
    for (int p = 0; p < parts; p++) all += ms[p];
    return all;
}

static int within(double x, int least, int most)
{
    return x > most ? most : x < least ? least : (int)x;
}

/* Sets calls, samples and first_ms. The time of the last warm-up call predicts the time of a
 * sample. */
static enum status warm_up(struct timing *t, struct contender *c)
{
    double ms[ROUNDS_PARTS], one = 0;
    c->calls = 1;
    for (int i = 0; i <= t->r->warmup; i++) {
        if (interrupt_noted()) return fail(ST_INTERRUPTED, "interrupted");
        TRY(sample(t, c, ms));
        one = sum(ms, c->parts);
        if (i == 0) c->first_ms = one;
        if (one > SLOW_MS && i >= t->r->cold) break;
    }
    double sample_ms = t->r->sample_ms > 0 ? t->r->sample_ms : SAMPLE_MS;
    if (!c->one_by_one) c->calls = within(sample_ms / (one > 1e-6 ? one : 1e-6), 1, CALLS_MOST);
    sample_ms = one * c->calls > 1e-6 ? one * c->calls : 1e-6;
    int least = sample_ms > c->budget_ms ? 1 : t->r->least;
    c->samples = within(c->budget_ms / sample_ms, least, t->r->most);
    t->expected_ms += sample_ms * c->samples;
    return ST_OK;
}

static void conclude(struct contender *c, const double *ms, struct arena *a)
{
    double *x = ARENA_NEW(a, double, c->samples), *total = ARENA_NEW(a, double, c->samples);
    for (int p = 0; p < c->parts; p++) {
        for (int i = 0; i < c->samples; i++) {
            x[i] = ms[i * ROUNDS_PARTS + p];
            total[i] += x[i];
        }
        c->part[p] = stats_of(x, c->samples);
    }
    c->total = stats_of(total, c->samples);
    c->series = total;
}

static struct arena *of_results(const struct timing *t)
{
    return t->r->keep ? t->r->keep : t->a;
}

static enum status take(struct timing *t, struct contender *c, int i, int round)
{
    t->round[i][c->taken] = round;
    return sample(t, c, &t->ms[i][c->taken++ * ROUNDS_PARTS]);
}

/* True if the verdict on each contender, compared with the fastest, is certain. */
static bool is_certain(struct timing *t, struct contender *c, int n)
{
    struct arena scratch = {0};
    struct verdict *v = ARENA_NEW(&scratch, struct verdict, n);
    int fastest;
    bool certain = true;
    for (int i = 0; i < n; i++) {
        c[i].samples = c[i].taken;
        conclude(&c[i], t->ms[i], &scratch);
    }
    rounds_order(c, n, v, &fastest);
    for (int i = 0; i < n; i++) certain &= v[i].kind != VERDICT_UNCERTAIN;
    arena_release(&scratch);
    return certain;
}

/* More rounds with all contenders. Each test of the verdicts may find an order by chance, so the
 * number of rounds doubles between two tests: there are four or five tests in all. */
static enum status go_on(struct timing *t, struct contender *c, int n, int round)
{
    enum { FEWEST = 8 };
    double budget_ms = 0;
    for (int i = 0; i < n; i++) {
        if (c[i].taken == 0) return ST_OK; /* stopped by Ctrl-C */
        budget_ms += c[i].budget_ms;
    }
    int last = round + ROUNDS_MORE * t->r->most;
    while (n > 1 && !interrupt_noted() && !is_certain(t, c, n)) {
        double round_ms = 0;
        for (int i = 0; i < n; i++) round_ms += c[i].calls * c[i].total.median;
        double affordable = (budget_ms - t->done_ms) / round_ms;
        int more = round > FEWEST ? round : FEWEST;
        if (more > last - round) more = last - round;
        if (more > affordable) more = (int)affordable;
        if (more < FEWEST) break;
        for (int end = round + more; round < end; round++)
            for (int k = 0; k < n && !interrupt_noted(); k++)
                TRY(take(t, &c[(k + round) % n], (k + round) % n, round));
    }
    return ST_OK;
}

static enum status run_rounds(struct timing *t, struct contender *c, int n)
{
    int rounds = 0;
    for (int i = 0; i < n; i++) {
        TRY(warm_up(t, &c[i]));
        c[i].taken = 0;
        if (c[i].samples > rounds) rounds = c[i].samples;
        int most = t->r->go_on ? c[i].samples + ROUNDS_MORE * t->r->most : c[i].samples;
        t->ms[i] = ARENA_NEW(t->a, double, most *ROUNDS_PARTS);
        c[i].round = t->round[i] = ARENA_NEW(of_results(t), int, most);
    }
    t->expected_ms += t->done_ms;
    t->known = true;
    for (int64_t round = 0; round < rounds; round++)
        for (int k = 0; k < n && !interrupt_noted(); k++) {
            int i = (int)((k + round) % n); /* another contender begins each round */
            int64_t at = round * c[i].samples / rounds, next = (round + 1) * c[i].samples / rounds;
            if (at < next) TRY(take(t, &c[i], i, (int)round));
        }
    if (t->r->go_on) TRY(go_on(t, c, n, rounds));
    for (int i = 0; i < n; i++) {
        if (c[i].taken == 0) return fail(ST_INTERRUPTED, "interrupted");
        c[i].samples = c[i].taken;
        conclude(&c[i], t->ms[i], of_results(t));
    }
    return ST_OK;
}

struct timed rounds_timed(const struct contender *c, struct arena *a)
{
    struct timed_turn *turn = ARENA_NEW(a, struct timed_turn, c->taken + 1);
    for (int i = 0; i < c->taken; i++) turn[i].number = c->round[i];
    return (struct timed){.ms = c->series, .n = c->taken, .turn = turn, .work = 1};
}

void rounds_order(const struct contender *c, int n, struct verdict *ret, int *ret_fastest)
{
    int best = 0;
    struct arena scratch = {0};
    for (int i = 1; i < n; i++)
        if (c[i].total.median < c[best].total.median) best = i;
    for (int i = 0; i < n; i++) {
        struct timed first = rounds_timed(&c[best], &scratch),
                     second = rounds_timed(&c[i], &scratch);
        ret[i] = (struct verdict){0};
        if (i != best) ret[i] = judge(&first, &second).verdict;
    }
    arena_release(&scratch);
    *ret_fastest = best;
}

enum status rounds_run(const struct rounds *r, struct contender *c, int n)
{
    struct arena a = {0};
    struct timing t = {
        .r = r, .a = &a, .ms = ARENA_NEW(&a, double *, n), .round = ARENA_NEW(&a, int *, n)};
    BUG_IF(r->least < 1 || r->most < r->least, "%d to %d samples", r->least, r->most);
    enum status st = run_rounds(&t, c, n);
    arena_release(&a);
    return st;
}
