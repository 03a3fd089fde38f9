#include "cli/lab_probe.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/turn.h"
#include "cli/child.h"
#include "lab/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_MS = 50 };

struct probing {
    const char *name;
    int fd;
    struct probe_note last;
    char size[256]; /* of the last launch; empty: there was none */
    bool runs;      /* the last launch has not returned */
    int64_t since_ns;
    double limit_s;
    bool endless;
    int64_t over_ns; /* when the notes ended */
};

/* Receives notes until the last note, the end of the process, or the time limit of a launch. */
static enum status listen(struct probing *p)
{
    for (;;) {
        struct probe_note note;
        bool gone;
        if (interrupt_noted()) return fail(ST_INTERRUPTED, "stopped while %s ran", p->name);
        if (turn_receive(p->fd, WAIT_MS, &note, sizeof note, &gone)) {
            p->last = note;
            p->since_ns = clock_ns();
            p->runs = note.what == PROBE_LAUNCHES;
            if (p->runs) snprintf(p->size, sizeof p->size, "%.200s", note.text);
            if (note.what > PROBE_RETURNED) return ST_OK;
        } else if (gone) {
            return ST_OK;
        }
        p->endless = p->runs && clock_ms(p->since_ns, clock_ns()) > 1e3 * p->limit_s;
        if (p->endless) return ST_OK;
    }
}

/* Whether the process must be killed: it hangs, Ctrl-C was pressed, or it had the time to end. */
static bool must_end(void *user)
{
    enum { PATIENCE_MS = 5000 };
    const struct probing *p = user;
    return p->endless || interrupt_noted() || clock_ms(p->over_ns, clock_ns()) > PATIENCE_MS;
}

/* Words how the process ended if it sent no last note. */
static const char *ended_early(const struct probing *p, int state, struct arena *a)
{
    const char *when = p->runs    ? arena_printf(a, "at %s: it", p->size)
                       : *p->size ? arena_printf(a, "after its call at %s it", p->size)
                                  : "before its first call it";
    if (!WIFSIGNALED(state))
        return arena_printf(a, "%s ended the process with exit code %d", when, WEXITSTATUS(state));
    int number = WTERMSIG(state);
    bool address = p->runs && (number == SIGSEGV || number == SIGBUS);
    return arena_printf(a, "%s crashed: %s%s", when, strsignal(number),
                        address ? ", an address far outside its tensors" : "");
}

static enum status conclude(const struct probing *p, int state, const char **ret, struct arena *a)
{
    *ret = NULL;
    if (p->endless) {
        *ret = arena_printf(a, "at %s: it had not ended after %g s (--limit)", p->size, p->limit_s);
        return ST_OK;
    }
    switch (p->last.what) {
    case PROBE_ENDS:
        return ST_OK;
    case PROBE_FINDS:
        *ret = arena_strdup(a, p->last.text);
        return ST_OK;
    case PROBE_FAILS:
        return fail(ST_FORMAT, "%s", p->last.text);
    default:
        *ret = ended_early(p, state, a);
        return ST_OK;
    }
}

enum status lab_probe(char **words, const char *name, double limit_s, const char **ret_left_out,
                      struct arena *a)
{
    struct probing p = {.name = name, .limit_s = limit_s, .fd = -1, .last.what = PROBE_RETURNED};
    int theirs;
    struct job job = {job_with_word(words, arena_printf(a, "--probe=%d", TURN_FD), a), name};
    TRY(turn_open(&p.fd, &theirs));
    struct child child;
    enum status st = child_start(&child, &job, CHILD_TO_STDERR, theirs);
    close(theirs);
    p.since_ns = clock_ns();
    if (st == ST_OK) {
        st = listen(&p);
        p.over_ns = clock_ns();
        int state = child_wait(&child, must_end, &p);
        if (st == ST_OK) st = conclude(&p, state, ret_left_out, a);
    }
    close(p.fd);
    return st;
}

/* --- the process that times ------------------------------------------------------------------- */

enum status lab_watched_open(int fd, struct lab_watched **ret)
{
    void *shared =
        mmap(NULL, sizeof(struct lab_watched), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        return fail(ST_IO, "--watched=%d: cannot map the memory shared with the parent process: %s",
                    fd, strerror(errno));
    *ret = shared;
    return ST_OK;
}

/* What the parent watches in the process that times the kernel. */
struct watching {
    const struct lab_watched *shared;
    double limit_s;
    int64_t ended_ns; /* when the run had ended; 0: not yet */
    bool endless;     /* a call exceeded the limit */
};

/* Whether a call exceeds the limit, or the process has not exited 2 s after its run. */
static bool is_late(void *user)
{
    enum { PATIENCE_MS = 2000 };
    struct watching *w = user;
    int64_t since = w->shared->since_ns, now = clock_ns();
    if (w->shared->ended && !w->ended_ns) w->ended_ns = now;
    bool late = since && clock_ms(since, now) > 1e3 * w->limit_s;
    w->endless |= late && !interrupt_noted();
    return late || (w->ended_ns && clock_ms(w->ended_ns, now) > PATIENCE_MS);
}

static enum status run_watched(char **words, const char *name, double limit_s, int fd,
                               struct lab_watched *w, const char **ret, struct arena *a)
{
    struct child child;
    struct watching watching = {.shared = w, .limit_s = limit_s};
    TRY(child_start(&child, &(struct job){words, name}, CHILD_TO_STDOUT, fd));
    int state = child_wait(&child, is_late, &watching);
    if (watching.endless)
        *ret = arena_printf(a, "a timed call did not return within %g s (--limit)", limit_s);
    else if (interrupt_noted())
        return fail(ST_INTERRUPTED, "stopped while %s was timed", name);
    else if (w->ended) /* the run has a result; how the process ended afterwards does not matter */
        return w->status == ST_OK ? ST_OK : fail(w->status, "%s", w->message);
    else if (WIFSIGNALED(state))
        *ret = arena_printf(a, "it crashed %s: %s",
                            w->since_ns ? "in a timed call" : "the program after a timed call",
                            strsignal(WTERMSIG(state)));
    else
        *ret = arena_printf(a, "the kernel ended the process with exit code %d %s a timed call",
                            WEXITSTATUS(state), w->since_ns ? "during" : "after");
    return ST_OK;
}

enum status lab_watch(char **words, const char *name, double limit_s, const char **ret_left_out,
                      struct arena *a)
{
    char **with = job_with_word(words, arena_printf(a, "--watched=%d", TURN_FD), a);
    struct lab_watched *w = NULL;
    *ret_left_out = NULL;
    int fd = memfd_create("strobe", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof *w) != 0) {
        if (fd >= 0) close(fd);
        return fail(ST_IO, "no memory to share with the process that times %s", name);
    }
    enum status st = lab_watched_open(fd, &w);
    if (st == ST_OK) {
        st = run_watched(with, name, limit_s, fd, w, ret_left_out, a);
        munmap(w, sizeof *w);
    }
    close(fd);
    return st;
}
