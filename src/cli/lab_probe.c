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
    pid_t pid;
    struct probe_note last;
    char size[256]; /* of the last launch; empty: there was none */
    bool runs;      /* the last launch has not returned */
    int64_t since_ns;
    double limit_s;
    bool endless;
};

char **lab_with_word(char **words, char *more, struct arena *a)
{
    int n = 0;
    while (words[n]) n++;
    char **ret = ARENA_NEW(a, char *, n + 2);
    memcpy(ret, words, (size_t)n * sizeof *ret);
    ret[n] = more;
    return ret;
}

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

/* Waits until the process has ended, and kills it if it hangs or after Ctrl-C. Returns its state as
 * waitpid reports it. */
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
    char **with = lab_with_word(words, arena_printf(a, "--probe=%d", TURN_FD), a);
    TRY(turn_open(&p.fd, &theirs));
    struct child child;
    enum status st = child_start(&child, with, name, CHILD_TO_STDERR, theirs);
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

/* Waits until the process has ended. Kills it if a call exceeds the limit (*ret_endless), or if it
 * has not exited 2 s after its run. */
static int wait_watched(const struct child *c, const struct lab_watched *w, double limit_s,
                        bool *ret_endless)
{
    enum { PATIENCE_MS = 2000 }; /* after the run has ended */
    int state = 0;
    int64_t ended_ns = 0;
    bool stopped = false;
    *ret_endless = false;
    while (waitpid(c->pid, &state, WNOHANG) == 0) {
        int64_t since = w->since_ns;
        if (w->ended && !ended_ns) ended_ns = clock_ns();
        if (ended_ns && clock_ms(ended_ns, clock_ns()) > PATIENCE_MS) kill(c->pid, SIGKILL);
        bool late = since && clock_ms(since, clock_ns()) > 1e3 * limit_s;
        if (interrupt_noted() && !stopped) child_stop(c);
        stopped = interrupt_noted();
        if (late) kill(c->pid, SIGKILL);
        *ret_endless |= late && !stopped;
        usleep(1000 * WAIT_MS);
    }
    return state;
}

static enum status run_watched(char **words, const char *name, double limit_s, int fd,
                               struct lab_watched *w, const char **ret, struct arena *a)
{
    struct child child;
    bool endless;
    TRY(child_start(&child, words, name, CHILD_TO_STDOUT, fd));
    int state = wait_watched(&child, w, limit_s, &endless);
    if (endless)
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
    char **with = lab_with_word(words, arena_printf(a, "--watched=%d", TURN_FD), a);
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
