#include "cli/child.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/turn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 50 };

extern char **environ;

char **job_with_word(char **words, char *more, struct arena *a)
{
    int n = 0;
    while (words[n]) n++;
    char **ret = ARENA_NEW(a, char *, n + 2);
    memcpy(ret, words, (size_t)n * sizeof *ret);
    ret[n] = more;
    return ret;
}

/* Passes any signal on as SIGTERM: a second SIGINT after a terminal's would kill the child. */
int child_wait(const struct child *c, bool (*must_end)(void *user), void *user)
{
    int status = 0, pause_ms = 1;
    bool passed_on = false;
    while (waitpid(c->pid, &status, WNOHANG) == 0) {
        if (interrupt_noted() && !passed_on) {
            child_stop(c);
            passed_on = true;
        }
        if (must_end && must_end(user)) kill(c->pid, SIGKILL);
        poll(NULL, 0, pause_ms);
        pause_ms = pause_ms < POLL_MS ? 2 * pause_ms : POLL_MS;
    }
    return status;
}

enum status child_start(struct child *c, const struct job *job, enum child_stdout to, int fd)
{
    posix_spawn_file_actions_t actions;
    signal(SIGCHLD, SIG_DFL); /* if the parent ignores SIGCHLD, the exit status is lost */
    posix_spawn_file_actions_init(&actions);
    bool unread = (fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY; /* it was closed */
    if (to == CHILD_TO_NOTHING || (to == CHILD_TO_STDERR && unread))
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    else if (to == CHILD_TO_STDERR)
        posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    if (fd >= 0) posix_spawn_file_actions_adddup2(&actions, fd, TURN_FD);
    int error = posix_spawn(&c->pid, "/proc/self/exe", &actions, NULL, job->words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error ? fail(ST_IO, "%s could not be started: %s", job->name, strerror(error)) : ST_OK;
}

void child_stop(const struct child *c)
{
    kill(c->pid, SIGTERM);
}

enum status child_end(const struct child *c, const char *name)
{
    int status = child_wait(c, NULL, NULL);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return ST_OK;
    if (interrupt_noted() || (WIFEXITED(status) && WEXITSTATUS(status) == 130))
        return fail(ST_INTERRUPTED, "stopped at %s", name);
    if (WIFSIGNALED(status))
        return fail(ST_IO, "%s was killed by a signal: %s", name, strsignal(WTERMSIG(status)));
    return fail(WEXITSTATUS(status) == 2 ? ST_USAGE : ST_IO, "%s failed; its message is above",
                name);
}

enum status job_run(const struct job *job, bool quiet)
{
    struct child c;
    TRY(child_start(&c, job, quiet ? CHILD_TO_NOTHING : CHILD_TO_STDERR, -1));
    return child_end(&c, job->name);
}

/* --- turns ------------------------------------------------------------------------------------ */

/* A turn is at most LONG_MS long. There are about MANY of them if that fits, but no turn is shorter
 * than SHORT_MS unless fewer than ENOUGH would be left. */
enum { MANY = 48, ENOUGH = 24, WAIT_MS = 200 };
static const double LONG_MS = 3000, SHORT_MS = 50;

struct one {
    const struct job *job;
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

static void note(struct turns *t, enum status st)
{
    if (st == ST_OK || t->st != ST_OK) return;
    t->st = st;
    fail_keep(&t->why);
}

static void note_end(struct turns *t, struct one *o)
{
    close(o->fd);
    o->fd = -1;
    o->waiting = false;
    note(t, child_end(&o->child, o->job->name));
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

static enum status open_one(struct turns *t, struct one *o, bool quiet, struct arena *a)
{
    int end;
    struct job job = *o->job;
    job.words = job_with_word(job.words, arena_printf(a, "--turns=%d", TURN_FD), a);
    TRY(turn_open(&o->fd, &end));
    enum status st = child_start(&o->child, &job, quiet ? CHILD_TO_NOTHING : CHILD_TO_STDERR, end);
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

static void run_in_turns(struct turns *t, const struct job *job, int n,
                         const struct jobs_options *o, struct arena *a)
{
    for (; t->n < n && t->st == ST_OK && !interrupt_noted(); t->n++) {
        t->one[t->n] = (struct one){.job = &job[t->n], .fd = -1};
        note(t, open_one(t, &t->one[t->n], o->quiet, a));
    }
    if (t->st == ST_OK && !interrupt_noted())
        go_round(t, o->warm);
    else
        stop(t);
    for (int i = 0; i < t->n; i++) {
        t->one[i].waiting = false;
        wait_for(t, &t->one[i]);
    }
}

static void run_one_by_one(struct turns *t, const struct job *job, int n, bool quiet)
{
    for (int i = 0; i < n && t->st != ST_INTERRUPTED && !interrupt_noted(); i++) {
        if (!quiet) log_info("\n=== %d of %d: %s", i + 1, n, job[i].name);
        note(t, job_run(&job[i], quiet));
    }
}

enum status jobs_run(const struct job *job, int n, const struct jobs_options *o, struct arena *a)
{
    struct turns t = {.one = ARENA_NEW(a, struct one, n)};
    if (o->in_turns)
        run_in_turns(&t, job, n, o, a);
    else
        run_one_by_one(&t, job, n, o->quiet);
    if (t.st != ST_OK) fail_restore(&t.why);
    return t.st;
}
