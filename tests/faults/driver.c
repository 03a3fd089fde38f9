/* faults MODE [OPTION...]
 *
 *   calls   the n-th open, read, write, fsync, rename, ... of train, resume, data, eval, sample,
 *           report, compare fails, once or from then on, for every n; of allocations some
 *   cuts    the power fails after any change of the folder; what was not synced may be lost
 *   kills   SIGKILL at random instants
 *   pairs   two commands at once in one place
 *   all     these
 *
 *   --limit=N       N trials at most of each mode, at random    --seconds=S   no trial starts later
 *   --sample        some trials of each mode, in about 40 s
 *   --seed=N        of all that is random (printed)              --jobs=N      trials at once
 *   --command=NAME  --call=NAME  --at=N  --error=NAME  --once  --on      only these trials
 *   --every         calls: all allocations
 *   --strobe=FILE   the program (STROBE)                         --keep        keep the folders
 *
 * Each failure is a line: what is wrong, the command that repeats it, what was found. The exit code
 * is 0 if there was none. docs/RELIABILITY.md says what is promised. */
#include "driver.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct settings settings = {.command = -1, .call = -1};

static const char *const finding_names[FINDINGS] = {
    [FIND_SIGNAL] = "ended by a signal",
    [FIND_HANG] = "hangs",
    [FIND_BUG] = "reports a bug",
    [FIND_WORDLESS] = "no sentence",
    [FIND_WORDY] = "several sentences",
    [FIND_ADVICE] = "wrong advice",
    [FIND_DAMAGED] = "called damaged",
    [FIND_SILENT] = "silent failure",
    [FIND_ANEW] = "began anew",
    [FIND_OLDER] = "older checkpoint",
    [FIND_LOST] = "lost",
    [FIND_LOST_BEST] = "lost the best",
    [FIND_LOG] = "log damaged",
    [FIND_BITS] = "bits differ",
    [FIND_STUCK] = "next run fails",
    [FIND_LEFT] = "files left or missing",
    [FIND_CHANGED] = "a reader wrote",
    [FIND_BOTH] = "both succeed",
};

struct tally {
    _Atomic int64_t next, done, failed, missed, killed, found[FINDINGS];
    _Atomic bool died;
};
static struct tally *tally;
static char program[PATH_BYTES];
static pid_t parent;
static volatile sig_atomic_t interrupted;

void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "faults: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    if (tally) tally->died = true;
    _exit(3);
}

void report(struct worker *w, enum finding f, const char *format, ...)
{
    char detail[2048], line[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    tally->found[f]++;
    w->failed = true;
    int n = snprintf(line, sizeof line, "FAIL %s: %s %s\n     %s\n", finding_names[f], program,
                     w->repeat, detail);
    if (write(STDOUT_FILENO, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1) < 0)
        die("stdout");
}

/* ---- the trials */

static void on_signal(int)
{
    interrupted = 1;
}

static void work(int number, int64_t n, trial_function *try, double until)
{
    struct worker w = {.number = number};
    path_in(w.dir, "%s/w%d", settings.work, number);
    path_in(w.side, "%s/side%d", settings.work, number);
    make_dir(w.side);
    while (!interrupted && !tally->died && getppid() == parent && (!until || now() < until)) {
        int64_t i = tally->next++;
        if (i >= n) break;
        w.failed = w.missed = w.killed = w.warned = false;
        try(&w, i);
        tally->failed += w.failed;
        tally->missed += w.missed && !w.failed;
        tally->killed += w.killed;
        tally->done++;
    }
    _exit(0);
}

static void show(const char *mode, int64_t n, double began, double until)
{
    double spent = now() - began,
           left = tally->done ? spent / (double)tally->done * (double)(n - tally->done) : 0;
    if (until && until - now() < left) left = until - now();
    printf("%s %lld/%lld, %lld failed, %.0f s left\n", mode, (long long)tally->done, (long long)n,
           (long long)tally->failed, left);
    fflush(stdout);
}

static int finish(const char *mode, int64_t n, double began)
{
    enum { MOST_MISSED = 50 }; /* one in so many */
    int64_t done = tally->done, failed = tally->failed, missed = tally->missed;
    printf("%s: %lld of %lld trials in %.0f s, %lld passed, %lld failed", mode, (long long)done,
           (long long)n, now() - began, (long long)(done - failed - missed), (long long)failed);
    for (int i = 0, shown = 0; i < FINDINGS; i++)
        if (tally->found[i])
            printf("%s%s %lld", shown++ ? ", " : " (", finding_names[i],
                   (long long)tally->found[i]);
    printf("%s", failed ? ")" : "");
    if (tally->killed) printf(", %lld killed", (long long)tally->killed);
    if (missed) printf(", %lld not reached", (long long)missed);
    bool unfinished = done < n && !settings.seconds;
    if (tally->died || unfinished) printf(", ended early");
    printf("\n");
    fflush(stdout);
    return failed || tally->died || interrupted || !done || unfinished ||
           missed > 1 + done / MOST_MISSED;
}

int run_trials(const char *mode, int64_t n, trial_function *try)
{
    memset(tally, 0, sizeof *tally);
    double began = now(), until = settings.seconds ? began + settings.seconds : 0, shown = began;
    bool one = settings.at && strcmp(mode, "calls") != 0; /* --at names the trial, from 1 */
    int running = one ? 1 : settings.jobs, status;
    if (one) {
        tally->next = settings.at - 1;
        n = settings.at;
    }
    fflush(NULL);
    for (int i = 0; i < running; i++) {
        pid_t child = fork();
        if (child < 0) die("fork: %s", strerror(errno));
        if (child == 0) work(i, n, try, until);
    }
    while (running) {
        while (waitpid(-1, &status, WNOHANG) > 0) {
            running--;
            if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
            printf("FAIL a worker of the harness ended with status %d\n", status);
            tally->died = true;
        }
        if (now() - shown > (isatty(1) ? 1 : 10)) shown = now(), show(mode, n, began, until);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return finish(mode, one ? 1 : n, began);
}

/* ---- the options */

static const char *value_of(const char *word, const char *name)
{
    size_t n = strlen(name);
    return strncmp(word, name, n) == 0 && word[n] == '=' ? word + n + 1 : NULL;
}

static int place_of(const char *name, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name)) return i;
    die("there is no %s", name);
}

static int error_of(const char *name)
{
    static const int errors[] = {EIO, ENOSPC, EACCES, ENOMEM, EMFILE, EINTR, FAULTS_SHORT};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (!strcmp(error_word(errors[i]), name)) return errors[i];
    die("there is no error %s", name);
}

static void read_option(const char *word)
{
    static const char *const calls[] = FAULTS_NAMES;
    const char *v;
    if ((v = value_of(word, "--limit")))
        settings.limit = atoll(v);
    else if ((v = value_of(word, "--seconds")))
        settings.seconds = atof(v);
    else if ((v = value_of(word, "--seed")))
        settings.seed = strtoull(v, NULL, 10);
    else if ((v = value_of(word, "--jobs")))
        settings.jobs = atoi(v);
    else if ((v = value_of(word, "--command")))
        settings.command = place_of(v, command_names, COMMANDS);
    else if ((v = value_of(word, "--call")))
        settings.call = place_of(v, calls, FAULTS_CALLS);
    else if ((v = value_of(word, "--at")))
        settings.at = atoll(v);
    else if ((v = value_of(word, "--error")))
        settings.error = error_of(v);
    else if ((v = value_of(word, "--strobe")))
        path_in(settings.strobe, "%s", v);
    else if (!strcmp(word, "--once") || !strcmp(word, "--on"))
        settings.on = word[4] ? 1 : 2;
    else if (!strcmp(word, "--every"))
        settings.every = true;
    else if (!strcmp(word, "--sample"))
        settings.sample = true;
    else if (!strcmp(word, "--keep"))
        settings.keep = true;
    else
        die("unknown option %s; see the top of tests/faults/driver.c", word);
}

static void find_programs(const char *self)
{
    char here[PATH_BYTES], found[4096];
    ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
    if (n <= 0) die("/proc/self/exe cannot be read");
    here[n] = '\0';
    *strrchr(here, '/') = '\0';
    path_in(program, "%s", self);
    path_in(settings.preload, "%s/preload.so", here);
    const char *strobe = getenv("STROBE");
    if (!*settings.strobe) path_in(settings.strobe, "%s", strobe ? strobe : "./strobe");
    if (!realpath(settings.strobe, found)) die("%s: %s", settings.strobe, strerror(errno));
    path_in(settings.strobe, "%s", found);
}

/* In memory where that is possible: what a crash loses is simulated, not tried. */
static void make_work(void)
{
    const char *base = getenv("TMPDIR");
    if (!base) base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    char made[PATH_BYTES], real[4096];
    if (!mkdtemp(path_in(made, "%s/strobe-faults-XXXXXX", base)) || !realpath(made, real))
        die("%s: %s", made, strerror(errno));
    path_in(settings.work, "%s", real);
}

/* Ends here if the preloaded library cannot work. */
static void probe(void)
{
    struct worker w = {.number = -1};
    static struct outcome o;
    path_in(w.dir, "%s/w", settings.work);
    path_in(w.side, "%s/side", settings.work);
    run(&w, &(struct start){.words = scene_words(TRAIN), .counted = true}, &o);
}

int main(int argc, char **argv)
{
    /* the last two: of a sample */
    static const struct {
        const char *name;
        int (*run)(void);
        int64_t limit;
        double seconds;
    } modes[] = {{"calls", mode_calls, 400, 16},
                 {"cuts", mode_cuts, 100, 8},
                 {"kills", mode_kills, 20, 6},
                 {"pairs", mode_pairs, 10, 6}};
    if (argc < 2) die("usage: faults calls|cuts|kills|pairs|all [OPTION...]");
    settings.jobs = (int)sysconf(_SC_NPROCESSORS_ONLN);
    settings.seed = (uint64_t)time(NULL);
    parent = getpid();
    for (int i = 2; i < argc; i++) read_option(argv[i]);
    find_programs(argv[0]);
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tally == MAP_FAILED) die("out of memory");
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    make_work();
    printf("seed %llu, %d at once, in %s\n", (unsigned long long)settings.seed, settings.jobs,
           settings.work);
    scene_build();
    probe();
    int failed = 0, ran = 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(argv[1], "all") && strcmp(argv[1], modes[i].name)) continue;
        if (settings.sample) {
            settings.limit = modes[i].limit;
            settings.seconds = modes[i].seconds;
        }
        failed |= modes[i].run();
        ran++;
    }
    if (!settings.keep) remove_tree(settings.work);
    if (!ran) die("there is no mode %s", argv[1]);
    return failed;
}
