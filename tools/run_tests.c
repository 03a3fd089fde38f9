/* Runs tests in parallel, each in a separate process group with a time limit, and counts their
 * cases.
 *
 * usage: run_tests BUILD [--jobs=N] [--sanitized] TEST...
 *
 * TEST is a source: tests/FOLDER/test_NAME.c, built as BUILD/tests/FOLDER/test_NAME, or a script
 * tests/e2e/test_NAME.sh. A test states how it must run in one line near its top:
 *
 *     test: WORD ... [; reason]
 *
 * alone      it runs alone, because it measures time
 * slow       `make quick` leaves it out (the Makefile does); it starts early
 * release    it does not run with sanitizers, because other tests cover the same code
 * shards=N   it runs N times, with TEST_SHARD=1/N ... N/N in its environment, one part each time
 * timeout=S  seconds after which it is killed, instead of 600
 *
 * A case that cannot run prints "skipped: why"; a script that can run nothing exits with 77. The
 * last line is "N passed, N failed, N skipped". docs/TESTING.md describes all of it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATH = 512, TIMEOUT = 600, GRACE = 5, SKIP = 77, SLOWEST = 5, HEAD_LINES = 40 };

struct test {
    char source[PATH], name[PATH + 16], program[2 * PATH], log[2 * PATH];
    bool alone, slow, release;
    int shard, shards;        /* shard 1 to shards; shards 1: undivided */
    double timeout, expected; /* seconds; expected 0: it never ran here */
    enum { WAITING, RUNNING, DONE } state;
    bool timed_out;
    pid_t pid;
    double start, seconds, processor; /* seconds by the clock and of all its processes */
    int passed, failed, skipped;
};

static struct test *test;
static int tests, jobs = 1;
static const char *build;
static bool sanitized, terminal;
static volatile sig_atomic_t interrupted;

static _Noreturn void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("run_tests: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    exit(2);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

/* ---- what a test says about itself */

static void read_word(struct test *t, const char *word)
{
    if (!strcmp(word, "alone"))
        t->alone = true;
    else if (!strcmp(word, "slow"))
        t->slow = true;
    else if (!strcmp(word, "release"))
        t->release = true;
    else if (sscanf(word, "shards=%d", &t->shards) == 1 && t->shards > 0)
        return;
    else if (sscanf(word, "timeout=%lf", &t->timeout) == 1 && t->timeout > 0)
        return;
    else
        die("%s: unknown word \"%s\" after \"test:\"", t->source, word);
}

static void read_marker(struct test *t)
{
    FILE *f = fopen(t->source, "r");
    if (!f) die("%s: %s", t->source, strerror(errno));
    char line[512];
    for (int n = 0; n < HEAD_LINES && fgets(line, sizeof line, f); n++) {
        char *at = line + strspn(line, " /*#");
        if (at == line || strncmp(at, "test: ", 6)) continue;
        at[strcspn(at, ";\n")] = '\0';
        char *rest = at + 6;
        for (char *w; (w = strsep(&rest, " ,"));)
            if (*w && strcmp(w, "*/")) read_word(t, w);
    }
    fclose(f);
}

/* "tests/plan/test_place.c" -> "tests/plan/test_place" */
static void name_test(struct test *t)
{
    bool script = ends_with(t->source, ".sh");
    int stem = (int)strlen(t->source) - (script ? 0 : 2);
    if (t->shards > 1)
        snprintf(t->name, sizeof t->name, "%.*s %d/%d", stem, t->source, t->shard, t->shards);
    else
        snprintf(t->name, sizeof t->name, "%.*s", stem, t->source);
    if (script)
        snprintf(t->program, sizeof t->program, "./%s", t->source);
    else
        snprintf(t->program, sizeof t->program, "%s/%.*s", build, stem, t->source);
    snprintf(t->log, sizeof t->log, "%s/logs/%s", build, t->name);
    for (char *c = t->log + strlen(build) + 6; *c; c++)
        if (*c == '/' || *c == ' ') *c = '-';
}

static void add_test(const char *source)
{
    struct test t = {.timeout = TIMEOUT, .shards = 1};
    if (strlen(source) >= sizeof t.source) die("%s: too long", source);
    strcpy(t.source, source);
    read_marker(&t);
    if (sanitized && t.release) return;
    if (sanitized) t.timeout *= 3;
    for (t.shard = 1; t.shard <= t.shards; t.shard++) {
        test = realloc(test, (size_t)(tests + 1) * sizeof *test);
        if (!test) die("no memory");
        name_test(&t);
        test[tests++] = t;
    }
}

/* ---- the seconds of earlier runs, to start the longest first and to predict the end */

static void times_path(char path[PATH])
{
    snprintf(path, PATH, "%s/test_times", build); /* lines "CLOCK PROCESSOR NAME", in seconds */
}

static void read_times(void)
{
    char path[PATH], line[2 * PATH];
    times_path(path);
    FILE *f = fopen(path, "r");
    if (!f) return;
    while (fgets(line, sizeof line, f)) {
        char *name;
        double seconds = strtod(line, &name);
        strtod(name, &name);
        name += *name == ' ';
        name[strcspn(name, "\n")] = '\0';
        for (int i = 0; i < tests; i++)
            if (!strcmp(test[i].name, name)) test[i].expected = seconds;
    }
    fclose(f);
}

/* Keeps the lines of tests that did not run this time. */
static void write_times(void)
{
    char path[PATH], new[PATH + 8], line[2 * PATH];
    times_path(path);
    snprintf(new, sizeof new, "%s.new", path);
    FILE *from = fopen(path, "r"), *to = fopen(new, "w");
    if (!to) die("%s: %s", new, strerror(errno));
    while (from && fgets(line, sizeof line, from)) {
        char *name = strchr(line, ' ');
        if (name) name = strchr(name + 1, ' ');
        bool again = false;
        for (int i = 0; name && i < tests; i++)
            again |= test[i].state == DONE &&
                     !strncmp(name + 1, test[i].name, strlen(test[i].name)) &&
                     name[1 + strlen(test[i].name)] == '\n';
        if (name && !again) fputs(line, to);
    }
    for (int i = 0; i < tests; i++)
        if (test[i].state == DONE && !test[i].timed_out)
            fprintf(to, "%.2f %.2f %s\n", test[i].seconds, test[i].processor, test[i].name);
    if (from) fclose(from);
    if (fclose(to) || rename(new, path)) die("%s: %s", path, strerror(errno));
}

/* Those that run alone are last; before them the longest first, and what is unknown as if it were
 * long. */
static int by_start(const void *a, const void *b)
{
    const struct test *x = a, *y = b;
    if (x->alone != y->alone) return x->alone - y->alone;
    double s = x->expected, t = y->expected;
    if (!s || !t) s = !s ? 1000 * (1 + x->slow) : s, t = !t ? 1000 * (1 + y->slow) : t;
    if (s != t) return s < t ? 1 : -1;
    return strcmp(x->source, y->source) ? strcmp(x->source, y->source) : x->shard - y->shard;
}

/* ---- running */

static void start_test(struct test *t)
{
    char shard[32];
    snprintf(shard, sizeof shard, "%d/%d", t->shard, t->shards);
    t->start = now();
    t->state = RUNNING;
    t->pid = fork();
    if (t->pid < 0) die("fork: %s", strerror(errno));
    if (t->pid) {
        setpgid(t->pid, t->pid);
        return;
    }
    setpgid(0, 0);
    signal(SIGHUP, SIG_DFL); /* nohup has it ignored */
    int in = open("/dev/null", O_RDONLY), out = open(t->log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) _exit(126);
    close(in);
    close(out);
    if (t->shards > 1) setenv("TEST_SHARD", shard, 1);
    execl(t->program, t->program, (char *)NULL);
    dprintf(2, "%s: %s\n", t->program, strerror(errno));
    _exit(126);
}

static bool number_before(const char *line, const char *word, int *ret)
{
    const char *at = strstr(line, word);
    if (!at) return false;
    while (at > line && at[-1] >= '0' && at[-1] <= '9') at--;
    *ret = atoi(at);
    return true;
}

/* cmocka ends with "[  PASSED  ] 5 test(s).", "[  SKIPPED ] tests: 1 test(s), listed below:", and
 * the same of FAILED. What prints nothing of that kind is one case. */
static void count_cases(struct test *t, int status)
{
    FILE *f = fopen(t->log, "r");
    char *line = NULL;
    size_t space = 0;
    int skips = 0, n;
    bool counted = false;
    while (f && getline(&line, &space, f) >= 0) {
        if (!strncmp(line, "skipped:", 8)) skips++;
        if (!number_before(line, " test(s)", &n)) continue;
        if (!strncmp(line, "[  PASSED  ]", 12)) t->passed += n, counted = true;
        if (!strncmp(line, "[  SKIPPED ]", 12)) t->skipped += n;
        if (!strncmp(line, "[  FAILED  ]", 12)) t->failed += n;
    }
    free(line);
    if (f) fclose(f);
    bool fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP && !counted)
        t->skipped = 1;
    else if (!fine && !t->failed)
        t->failed = 1;
    else if (fine && !counted)
        t->passed = 1, t->skipped = skips;
}

static double seconds_left(void)
{
    double known = 0, of_known = 0, work = 0, longest = 0, t = now();
    for (int i = 0; i < tests; i++)
        if (test[i].state == DONE) known++, of_known += test[i].seconds;
    for (int i = 0; i < tests; i++) {
        double left = test[i].expected ? test[i].expected : known ? of_known / known : 1;
        if (test[i].state == DONE) continue;
        if (test[i].state == RUNNING) left -= t - test[i].start;
        if (left < 0) left = 0;
        work += test[i].alone ? left * jobs : left;
        if (left > longest) longest = left;
    }
    return work / jobs > longest ? work / jobs : longest;
}

static void print_file(const char *path)
{
    char block[4096];
    FILE *f = fopen(path, "r");
    if (!f) return;
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;) fwrite(block, 1, n, stdout);
    fclose(f);
}

static void clear_status(void)
{
    if (terminal) fputs("\r\033[K", stdout);
}

static void print_status(int done)
{
    if (!terminal) return;
    clear_status();
    printf("  %d of %d", done, tests);
    double left = seconds_left();
    if (left > 2) printf(", %.0f s left", left);
    for (int i = 0, n = 0; i < tests; i++)
        if (test[i].state == RUNNING && n++ < 2) printf("%s %s", n == 1 ? ":" : ",", test[i].name);
    fflush(stdout);
}

static void print_end(const struct test *t, int done, int status)
{
    const char *word = t->failed ? "FAIL" : t->passed ? "ok" : "skip";
    clear_status();
    printf("  %-5s %s (%.1f s)", word, t->name, t->seconds);
    printf("%*s %d of %d", (int)(56 - strlen(t->name) > 0 ? 56 - (int)strlen(t->name) : 0), "",
           done, tests);
    double left = seconds_left();
    if (left > 2) printf(", %.0f s left", left);
    putchar('\n');
    if (t->failed) {
        print_file(t->log);
        if (t->timed_out)
            printf("  %s was stopped after %.0f s, its time limit\n", t->name, t->timeout);
        else if (WIFSIGNALED(status))
            printf("  %s was ended by signal %d (%s)\n", t->name, WTERMSIG(status),
                   strsignal(WTERMSIG(status)));
        else
            printf("  %s ended with exit code %d\n", t->name, WEXITSTATUS(status));
    }
    fflush(stdout);
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

/* Whether a test that ran has ended. */
static bool reap(struct test *t, int *status)
{
    double ran = now() - t->start;
    struct rusage used;
    if (wait4(t->pid, status, WNOHANG, &used) == t->pid) {
        kill(-t->pid, SIGKILL); /* what it left behind */
        t->seconds = ran;
        t->processor = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
        t->state = DONE;
        count_cases(t, *status);
        if (t->timed_out && !t->failed) t->failed = 1;
        return true;
    }
    if (ran > t->timeout && !t->timed_out) {
        t->timed_out = true;
        kill(-t->pid, SIGTERM);
    }
    if (ran > t->timeout + GRACE) kill(-t->pid, SIGKILL);
    return false;
}

static struct test *next_test(int running)
{
    bool alone_runs = false;
    for (int i = 0; i < tests; i++) alone_runs |= test[i].state == RUNNING && test[i].alone;
    if (alone_runs || running >= jobs) return NULL;
    for (int i = 0; i < tests; i++)
        if (test[i].state == WAITING) return test[i].alone && running ? NULL : &test[i];
    return NULL;
}

static void stop_all(void)
{
    for (int i = 0; i < tests; i++)
        if (test[i].state == RUNNING) kill(-test[i].pid, SIGTERM);
    for (double until = now() + GRACE; now() < until; pause_briefly()) {
        bool left = false;
        for (int i = 0; i < tests; i++)
            if (test[i].state == RUNNING && waitpid(test[i].pid, NULL, WNOHANG) == 0) left = true;
        if (!left) break;
    }
    for (int i = 0; i < tests; i++)
        if (test[i].state == RUNNING) kill(-test[i].pid, SIGKILL);
    clear_status();
    puts("interrupted");
    exit(130);
}

static void run_all(void)
{
    int done = 0, running = 0;
    for (double shown = 0; done < tests; pause_briefly()) {
        if (interrupted) stop_all();
        for (struct test *t; (t = next_test(running));) start_test(t), running++;
        for (int i = 0, status; i < tests; i++) {
            if (test[i].state != RUNNING || !reap(&test[i], &status)) continue;
            running--;
            print_end(&test[i], ++done, status);
        }
        if (now() - shown > .5) print_status(done), shown = now();
    }
    clear_status();
}

/* ---- the end */

static void print_skipped(void)
{
    bool any = false;
    for (int i = 0; i < tests; i++) {
        if (!test[i].skipped) continue;
        if (!any) puts("skipped:");
        any = true;
        printf("  %s, %d:", test[i].name, test[i].skipped);
        FILE *f = fopen(test[i].log, "r");
        char line[512], last[512] = "";
        while (f && fgets(line, sizeof line, f)) {
            if (strncmp(line, "skipped:", 8) || !strcmp(line, last)) continue;
            strcpy(last, line);
            line[strcspn(line, "\n")] = '\0';
            printf("%s", line + 8);
        }
        if (f) fclose(f);
        puts(*last ? "" : " it does not say why");
    }
}

static int by_seconds(const void *a, const void *b)
{
    const struct test *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static void set_environment(void)
{
    char here[PATH], path[2 * PATH];
    if (!getcwd(here, sizeof here)) die("getcwd: %s", strerror(errno));
    snprintf(path, sizeof path, "%s/%s", here, build);
    setenv("STROBE_BUILD", path, 1);
    snprintf(path, sizeof path, "%s/%s/strobe", here, build);
    setenv("STROBE", path, 1);
    setenv("GOMP_SPINCOUNT", "5000", 0); /* src/main.c says why */
    snprintf(path, sizeof path, "%d", jobs);
    setenv("TEST_JOBS", path, 1);
}

int main(int argc, char **argv)
{
    if (argc < 3) die("usage: run_tests BUILD [--jobs=N] [--sanitized] TEST...");
    build = argv[1];
    jobs = (int)sysconf(_SC_NPROCESSORS_ONLN);
    terminal = isatty(1);
    for (int i = 2; i < argc; i++) {
        if (sscanf(argv[i], "--jobs=%d", &jobs) == 1) continue;
        if (!strcmp(argv[i], "--sanitized"))
            sanitized = true;
        else
            add_test(argv[i]);
    }
    if (jobs < 1) die("--jobs must be at least 1");
    char logs[PATH];
    snprintf(logs, sizeof logs, "%s/logs", build);
    if (mkdir(logs, 0755) && errno != EEXIST) die("%s: %s", logs, strerror(errno));
    set_environment();
    read_times();
    qsort(test, (size_t)tests, sizeof *test, by_start);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);

    double start = now();
    run_all();
    write_times();
    print_skipped();
    qsort(test, (size_t)tests, sizeof *test, by_seconds);
    if (tests > SLOWEST) {
        printf("%.0f s; slowest:", now() - start);
        for (int i = 0; i < SLOWEST; i++)
            printf("%s %s %.1f s", i ? "," : "", test[i].name, test[i].seconds);
        putchar('\n');
    }
    int passed = 0, failed = 0, skipped = 0;
    for (int i = 0; i < tests; i++)
        passed += test[i].passed, failed += test[i].failed, skipped += test[i].skipped;
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed || !(passed + skipped);
}
