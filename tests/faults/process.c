/* Runs the program with a fault, a record or a kill. */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIMEOUT = 30 };

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* splitmix64 */
uint64_t random_of(uint64_t seed, uint64_t n)
{
    uint64_t x = seed * 0xd1342543de82ef95u + (n + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static const struct {
    const char *name;
    int error;
} errors[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EACCES", EACCES},     {"ENOMEM", ENOMEM},
              {"EMFILE", EMFILE}, {"EINTR", EINTR},   {"short", FAULTS_SHORT}};

const char *error_word(int error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error) return errors[i].name;
    return "?";
}

const char *fault_words(const struct fault *f)
{
    static char text[128];
    static const char *const names[] = FAULTS_NAMES;
    snprintf(text, sizeof text, "--call=%s --at=%lld --error=%s --%s", names[f->call],
             (long long)f->at, error_word(f->error), f->on ? "on" : "once");
    return text;
}

static void redirect(const struct worker *w, const char *name, const char *suffix, int fd)
{
    char path[PATH_BYTES];
    int to = open(path_in(path, "%s/%s%s", w->side, name, suffix ? suffix : ""),
                  O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (to < 0 || dup2(to, fd) < 0) _exit(126);
    close(to);
}

static void set_faults(const struct worker *w, const struct start *s)
{
    static const char *const names[] = FAULTS_NAMES;
    char text[PATH_BYTES];
    if (!s->counted && !s->fault && !s->record && !s->stacks) return;
    setenv("LD_PRELOAD", settings.preload, 1);
    setenv("FAULTS_UNDER", w->dir, 1);
    setenv("FAULTS_SHARED", path_in(text, "%s/shared%s", w->side, s->suffix ? s->suffix : ""), 1);
    if (s->record) setenv("FAULTS_RECORD", s->record, 1);
    if (s->stacks) setenv("FAULTS_STACKS", s->stacks, 1);
    if (!s->fault) return;
    setenv("FAULTS_CALL", names[s->fault->call], 1);
    setenv("FAULTS_AT", path_in(text, "%lld", (long long)s->fault->at), 1);
    setenv("FAULTS_ERROR", error_word(s->fault->error), 1);
    if (s->fault->on) setenv("FAULTS_ON", "1", 1);
}

static void set_environment(const struct worker *w, const struct start *s)
{
    char text[PATH_BYTES];
    setenv("STROBE_LOG", "info", 1);
    setenv("XDG_CACHE_HOME", path_in(text, "%s/cache", w->side), 1);
    setenv("GOMP_SPINCOUNT", "1000", 1);
    set_faults(w, s);
}

void process_start(const struct worker *w, const struct start *s, struct process *ret)
{
    char path[PATH_BYTES];
    /* A child that is killed at once leaves no output, and not that of the process before. */
    static const char *const files[] = {"shared", "out", "err"};
    for (int i = 0; i < 3; i++)
        unlink(path_in(path, "%s/%s%s", w->side, files[i], s->suffix ? s->suffix : ""));
    fflush(NULL);
    *ret = (struct process){.began = now(), .start = *s, .pid = fork()};
    if (ret->pid < 0) die("fork: %s", strerror(errno));
    if (ret->pid > 0) return;
    setpgid(0, 0);
    if (chdir(w->dir)) _exit(126);
    redirect(w, "out", s->suffix, 1);
    redirect(w, "err", s->suffix, 2);
    close(0);
    open("/dev/null", O_RDONLY);
    set_environment(w, s);
    execv(settings.strobe, s->words);
    _exit(126);
}

static void take(char *ret, size_t capacity, const struct worker *w, const char *name,
                 const char *suffix)
{
    char path[PATH_BYTES];
    char *text = read_whole(path_in(path, "%s/%s%s", w->side, name, suffix ? suffix : ""), NULL);
    snprintf(ret, capacity, "%s", text ? text : "");
    free(text);
}

static void take_shared(const struct worker *w, const struct start *s, struct outcome *ret)
{
    char path[PATH_BYTES];
    size_t n;
    char *data = read_whole(path_in(path, "%s/shared%s", w->side, s->suffix ? s->suffix : ""), &n);
    if (data && n == sizeof(struct faults_shared)) {
        struct faults_shared shared;
        memcpy(&shared, data, sizeof shared);
        for (int i = 0; i < FAULTS_CALLS; i++) ret->count[i] = shared.count[i];
        ret->hit = shared.hits > 0;
        snprintf(ret->where, sizeof ret->where, "%.255s", shared.where);
    }
    free(data);
}

void process_wait(const struct worker *w, struct process *p, struct outcome *ret)
{
    int status;
    bool killed = false;
    *ret = (struct outcome){0};
    while (waitpid(p->pid, &status, WNOHANG) == 0) {
        double ran = now() - p->began;
        if (p->start.kill_after > 0 && ran >= p->start.kill_after && !killed) {
            kill(-p->pid, SIGKILL);
            kill(p->pid, SIGKILL);
            killed = true;
        }
        if (ran > TIMEOUT && !ret->hung) {
            ret->hung = true;
            kill(-p->pid, SIGKILL);
            kill(p->pid, SIGKILL);
        }
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    kill(-p->pid, SIGKILL); /* what it left behind */
    ret->seconds = now() - p->began;
    ret->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ret->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    ret->killed = killed && ret->signal == SIGKILL;
    take(ret->out, sizeof ret->out, w, "out", p->start.suffix);
    take(ret->err, sizeof ret->err, w, "err", p->start.suffix);
    take_shared(w, &p->start, ret);
}

void run(const struct worker *w, const struct start *s, struct outcome *ret)
{
    enum { AGAIN = 98 }; /* the library found libc at an address that it cannot filter */
    do {
        struct process p;
        process_start(w, s, &p);
        process_wait(w, &p, ret);
    } while (ret->code == AGAIN);
    if (ret->code == 99 && w->number >= 0) die("system calls cannot be trapped: %s", ret->err);
    if (ret->code == 99) {
        if (!settings.keep) remove_tree(settings.work);
        fprintf(stderr, "skipped: system calls cannot be trapped here: %s", ret->err);
        exit(EXIT_SKIPPED);
    }
    if (ret->code == 126) die("%s could not be started", settings.strobe);
}
