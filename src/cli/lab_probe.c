#include "cli/lab_probe.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/turn.h"
#include "cli/child.h"
#include "lab/probe.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_MS = 50 };

struct probing {
    const char *name;
    int fd;
    pid_t pid;
    struct probe_note last;
    char size[256]; /* of the launch that is under way; empty: none */
    int64_t since_ns;
    double limit_s;
    bool endless;
};

/* Takes notes until the last one, the end of the process, or the end of the time. */
static enum status listen(struct probing *p)
{
    for (;;) {
        struct probe_note note;
        bool gone;
        if (interrupt_noted()) return fail(ST_INTERRUPTED, "stopped while %s ran", p->name);
        if (turn_receive(p->fd, WAIT_MS, &note, sizeof note, &gone)) {
            p->last = note;
            p->since_ns = clock_ns();
            snprintf(p->size, sizeof p->size, "%.200s",
                     note.what == PROBE_LAUNCHES ? note.text : "");
            if (note.what > PROBE_RETURNED) return ST_OK;
        } else if (gone) {
            return ST_OK;
        }
        p->endless = *p->size && clock_ms(p->since_ns, clock_ns()) > 1e3 * p->limit_s;
        if (p->endless) return ST_OK;
    }
}

/* Waits for the end of the process, by force if need be; its state as waitpid gives it. */
static int end(const struct probing *p)
{
    enum { PATIENCE_MS = 5000 };
    int state = 0;
    if (p->endless || interrupt_noted()) kill(p->pid, SIGKILL);
    int64_t begin = clock_ns();
    while (waitpid(p->pid, &state, WNOHANG) == 0) {
        if (clock_ms(begin, clock_ns()) > PATIENCE_MS) kill(p->pid, SIGKILL);
        usleep(1000);
    }
    return state;
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
    case PROBE_LAUNCHES:
        *ret = WIFSIGNALED(state)
                   ? arena_printf(a, "at %s: it crashed: %s%s", p->size, strsignal(WTERMSIG(state)),
                                  WTERMSIG(state) == SIGSEGV || WTERMSIG(state) == SIGBUS
                                      ? ", an address far outside its tensors"
                                      : "")
                   : arena_printf(a, "at %s: it ended the process with exit code %d", p->size,
                                  WEXITSTATUS(state));
        return ST_OK;
    default:
        return fail(ST_IO, "the process that probes %s ended without a result", p->name);
    }
}

enum status lab_probe(char **words, const char *name, double limit_s, const char **ret_left_out,
                      struct arena *a)
{
    struct probing p = {.name = name, .limit_s = limit_s, .fd = -1, .last.what = PROBE_RETURNED};
    int theirs, n = 0;
    while (words[n]) n++;
    char **with = ARENA_NEW(a, char *, n + 2);
    memcpy(with, words, (size_t)n * sizeof *with);
    with[n] = arena_printf(a, "--probe=%d", TURN_FD);
    TRY(turn_open(&p.fd, &theirs));
    struct child child;
    enum status st = child_start(&child, with, name, false, theirs);
    close(theirs);
    p.pid = child.pid;
    p.since_ns = clock_ns();
    if (st == ST_OK) {
        st = listen(&p);
        int state = end(&p);
        if (st == ST_OK) st = conclude(&p, state, ret_left_out, a);
    }
    close(p.fd);
    return st;
}
