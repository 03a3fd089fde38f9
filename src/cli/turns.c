#include "cli/turns.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/turn.h"
#include "cli/child.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A turn is at most LONG_MS long. There are about MANY of them if that fits, but no turn is shorter
 * than SHORT_MS unless fewer than ENOUGH would be left. */
enum { MANY = 48, ENOUGH = 24, WAIT_MS = 200 };
static const double LONG_MS = 3000, SHORT_MS = 50;

struct one {
    const struct turns_of *of;
    struct child child;
    int fd;       /* -1: it has ended */
    bool waiting; /* for a turn */
    struct turn_report said;
};

struct turns {
    struct one *one;
    int n;
    bool stopping;
    struct turn_grant grant;
    enum status st; /* the first failure */
    struct failure why;
};

static void note_end(struct turns *t, struct one *o)
{
    close(o->fd);
    o->fd = -1;
    o->waiting = false;
    enum status st = child_end(&o->child, o->of->name);
    if (st == ST_OK || t->st != ST_OK) return;
    t->st = st;
    fail_keep(&t->why);
}

/* Tells all processes once that they should stop. */
static void stop(struct turns *t)
{
    if (t->stopping) return;
    t->stopping = true;
    for (int i = 0; i < t->n; i++)
        if (t->one[i].fd >= 0) child_stop(&t->one[i].child);
}

/* Waits until the process waits for its next turn, or has ended. */
static void wait_for(struct turns *t, struct one *o)
{
    bool gone = false;
    while (o->fd >= 0 && !o->waiting) {
        if (interrupt_noted()) stop(t);
        o->waiting = turn_reported(o->fd, WAIT_MS, &o->said, &gone);
        if (gone) note_end(t, o);
    }
}

static enum status open_one(struct turns *t, int i, bool quiet, struct arena *a)
{
    struct one *o = &t->one[i];
    int end, words = 0;
    while (o->of->words[words]) words++;
    char **with = ARENA_NEW(a, char *, words + 2);
    memcpy(with, o->of->words, (size_t)words * sizeof *with);
    with[words] = arena_printf(a, "--turns=%d", TURN_FD);
    TRY(turn_open(&o->fd, &end));
    enum status st =
        child_start(&o->child, with, o->of->name, quiet ? CHILD_TO_NOTHING : CHILD_TO_STDERR, end);
    close(end);
    if (st != ST_OK) {
        close(o->fd);
        o->fd = -1;
        return st;
    }
    wait_for(t, o);
    return ST_OK;
}

static void give(struct turns *t, struct one *o)
{
    if (o->fd < 0 || t->stopping) return;
    if (turn_give(o->fd, &t->grant) != ST_OK) {
        note_end(t, o); /* it died while it waited */
        return;
    }
    o->waiting = false;
    wait_for(t, o);
}

/* How many units a turn has: by the process that takes longest. */
static int64_t units_of(const struct turns *t)
{
    double ms = 0;
    int64_t left = 0;
    for (int i = 0; i < t->n; i++) {
        if (t->one[i].fd < 0) continue;
        if (t->one[i].said.ms > ms) ms = t->one[i].said.ms;
        if (t->one[i].said.left > left) left = t->one[i].said.left;
    }
    int64_t units = left / MANY, enough = left / ENOUGH;
    double longest = ms > 0 ? LONG_MS / ms : 1, shortest = ms > 0 ? SHORT_MS / ms : 1;
    if (shortest > (double)enough) shortest = (double)enough;
    if ((double)units < shortest) units = (int64_t)shortest;
    if ((double)units > longest) units = (int64_t)longest;
    return units > 1 ? units : 1;
}

static bool any_left(const struct turns *t)
{
    for (int i = 0; i < t->n; i++)
        if (t->one[i].fd >= 0) return true;
    return false;
}

static void go_round(struct turns *t, int64_t warm)
{
    t->grant = (struct turn_grant){.of = (int64_t)time(NULL) * 1000 + clock_ns() / 1000000 % 1000,
                                   .units = warm > 1 ? warm : 1};
    for (; any_left(t) && !t->stopping; t->grant.number++) {
        if (t->grant.number == 1) t->grant.units = units_of(t);
        for (int i = 0; i < t->n; i++) give(t, &t->one[t->grant.number % 2 ? t->n - 1 - i : i]);
    }
}

enum status turns_run(const struct turns_of *of, int n, int64_t warm, bool quiet, struct arena *a)
{
    struct turns t = {.one = ARENA_NEW(a, struct one, n)};
    enum status st = ST_OK;
    for (; t.n < n && st == ST_OK && t.st == ST_OK && !interrupt_noted(); t.n++) {
        t.one[t.n] = (struct one){.of = &of[t.n], .fd = -1};
        st = open_one(&t, t.n, quiet, a);
    }
    if (st != ST_OK && t.st == ST_OK) {
        t.st = st;
        fail_keep(&t.why);
    }
    if (t.st == ST_OK && !interrupt_noted())
        go_round(&t, warm);
    else
        stop(&t);
    for (int i = 0; i < t.n; i++) {
        t.one[i].waiting = false;
        wait_for(&t, &t.one[i]);
    }
    if (t.st != ST_OK) fail_restore(&t.why);
    return t.st;
}
