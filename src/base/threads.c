#include "base/threads.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#include <math.h>
#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t chosen; /* 0: not set yet */

enum { WATCHED_MOST = 512, CACHE_LINE = 64 };
/* Busy time in the current region; one cache line per thread. */
static struct {
    _Alignas(CACHE_LINE) int64_t ns;
    int64_t begun_ns;
} busy[WATCHED_MOST];
static struct threads_watch *watching; /* NULL: disabled */

/* Limits are rounded down to whole threads: all threads would wait for a throttled thread at every
 * barrier, which costs more than the fraction of a processor gains. */
static int64_t whole_threads(double quota, double period)
{
    if (quota <= 0 || period <= 0) return 0;
    return quota < period ? 1 : (int64_t)(quota / period);
}

/* The limit of one group. Version 2: "QUOTA PERIOD" or "max PERIOD"; version 1: two files. */
static int64_t limit_at(const char *directory)
{
    char path[2304], line[64];
    double quota;
    snprintf(path, sizeof path, "%s/cpu.max", directory);
    if (file_peek(path, line, sizeof line)) {
        char *rest;
        quota = strtod(line, &rest); /* 0 for "max" */
        return whole_threads(quota, strtod(rest, NULL));
    }
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
    if (!file_peek(path, line, sizeof line)) return 0;
    quota = strtod(line, NULL); /* -1: no limit */
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
    if (!file_peek(path, line, sizeof line)) return 0;
    return whole_threads(quota, strtod(line, NULL));
}

/* The smallest limit of a group and its ancestors. In a container the path may be a path of the
 * host that does not exist here; the walk ends at the mount, which is the container's own group. */
static int64_t limit_upwards(const char *mount, const char *group)
{
    char directory[2200];
    snprintf(directory, sizeof directory, "%s%s", mount, group);
    int64_t least = 0;
    for (;;) {
        int64_t limit = limit_at(directory);
        if (limit > 0 && (least == 0 || limit < least)) least = limit;
        if (strlen(directory) <= strlen(mount)) return least;
        *strrchr(directory, '/') = '\0';
    }
}

/* Lines are "0::/group" (version 2) and "4:cpu,cpuacct:/group" (version 1). */
int64_t threads_group_limit(const char *groups, const char *root)
{
    int64_t least = 0;
    while (*groups) {
        char line[1024], mount[1100];
        int length = (int)strcspn(groups, "\n");
        snprintf(line, sizeof line, "%.*s", length, groups);
        groups += length + (groups[length] == '\n');
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        controllers++;
        char list[1030];
        snprintf(list, sizeof list, ",%s,", controllers);
        if (!*controllers)
            snprintf(mount, sizeof mount, "%s", root);
        else if (strstr(list, ",cpu,"))
            snprintf(mount, sizeof mount, "%s/cpu", root);
        else
            continue;
        int64_t limit = limit_upwards(mount, strcmp(group, "/") ? group : "");
        if (limit > 0 && (least == 0 || limit < least)) least = limit;
    }
    return least;
}

/* True if `number` is in a list such as "0,32" or "0-3,8-11". */
static bool is_listed(const char *list, int number)
{
    for (const char *p = list; *p;) {
        char *end;
        long first = strtol(p, &end, 10), last = first;
        if (end == p) return false;
        if (*end == '-') last = strtol(end + 1, &end, 10);
        if (number >= first && number <= last) return true;
        p = end + (*end == ',');
    }
    return false;
}

int64_t threads_cores(const int *processor, int n, const char *root)
{
    int64_t cores = 0;
    for (int i = 0; i < n; i++) {
        char path[2304], siblings[1024];
        bool counted = false;
        snprintf(path, sizeof path, "%s/cpu%d/topology/thread_siblings_list", root, processor[i]);
        if (file_peek(path, siblings, sizeof siblings))
            for (int k = 0; k < i && !counted; k++) counted = is_listed(siblings, processor[k]);
        cores += !counted;
    }
    return cores;
}

/* Returns their number. */
static int processors_of_mask(const cpu_set_t *mask, int processor[CPU_SETSIZE])
{
    int n = 0;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, mask)) processor[n++] = i;
    return n;
}

static int64_t cores_of_mask(const cpu_set_t *mask)
{
    int processor[CPU_SETSIZE], n = processors_of_mask(mask, processor);
    return threads_cores(processor, n, "/sys/devices/system/cpu");
}

/* The processors that this process may use; false if they are too many for a mask. If OpenMP binds
 * threads (OMP_PROC_BIND), this thread has one place only, so the union of all places is used. */
static bool mask_of_process(cpu_set_t *ret_mask)
{
    int places = omp_get_num_places();
    if (!places) return sched_getaffinity(0, sizeof *ret_mask, ret_mask) == 0;
    CPU_ZERO(ret_mask);
    for (int place = 0; place < places; place++) {
        int processor[CPU_SETSIZE], n = omp_get_place_num_procs(place);
        if (n > CPU_SETSIZE) return false;
        omp_get_place_proc_ids(place, processor);
        for (int i = 0; i < n; i++)
            if (processor[i] < CPU_SETSIZE) CPU_SET(processor[i], ret_mask);
    }
    return true;
}

void threads_unbind(void)
{
    cpu_set_t mask;
    if (omp_get_num_places() && mask_of_process(&mask)) sched_setaffinity(0, sizeof mask, &mask);
}

static int64_t within_groups(int64_t n)
{
    char groups[8192] = "";
    file_peek("/proc/self/cgroup", groups, sizeof groups);
    int64_t limit = threads_group_limit(groups, "/sys/fs/cgroup");
    if (limit > 0 && limit < n) n = limit;
    return n > 0 ? n : 1;
}

int64_t threads_available(void)
{
    cpu_set_t mask;
    return within_groups(mask_of_process(&mask) ? cores_of_mask(&mask) : omp_get_num_procs());
}

int64_t threads_allowed(void)
{
    cpu_set_t mask;
    bool known = sched_getaffinity(0, sizeof mask, &mask) == 0;
    return within_groups(known ? cores_of_mask(&mask) : CPU_SETSIZE);
}

double threads_worked(const char *stat, const int *processor, int n)
{
    double ticks = 0;
    while (!strncmp(stat, "cpu", 3)) {
        unsigned long long user, nice, system, idle, wait, irq, soft, steal;
        int number; /* the first line, of all processors, has none */
        bool one =
            stat[3] != ' ' && sscanf(stat, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &number,
                                     &user, &nice, &system, &idle, &wait, &irq, &soft, &steal) == 9;
        for (int i = 0; one && i < n; i++)
            if (processor[i] == number)
                ticks += (double)(user + nice + system + irq + soft + steal);
        stat += strcspn(stat, "\n");
        stat += *stat == '\n';
    }
    return ticks / (double)sysconf(_SC_CLK_TCK);
}

int64_t threads_beside(int64_t cores, int64_t processors, double taken)
{
    return max_i64(min_i64(cores, llround((double)processors - taken)), 1);
}

int64_t threads_free(void)
{
    enum { STAT_BYTES = 64 << 10, SAMPLE_MS = 100 };
    static char text[STAT_BYTES];
    int64_t cores = threads_available();
    char line[64];
    int processor[CPU_SETSIZE];
    cpu_set_t mask;
    double minute = file_peek("/proc/loadavg", line, sizeof line) ? strtod(line, NULL) : 0;
    bool idle = threads_beside(cores, cores, minute) == cores;
    if (idle || !mask_of_process(&mask) || !file_peek("/proc/stat", text, sizeof text))
        return cores;
    int n = processors_of_mask(&mask, processor);
    double before = threads_worked(text, processor, n);
    int64_t start_ns = clock_ns();
    nanosleep(&(struct timespec){.tv_nsec = SAMPLE_MS * 1000000}, NULL);
    if (!file_peek("/proc/stat", text, sizeof text)) return cores;
    double seconds = 1e-3 * clock_ms(start_ns, clock_ns());
    double now = (threads_worked(text, processor, n) - before) / seconds;
    return threads_beside(cores, n, fmin(now, minute));
}

int64_t threads_asked(void)
{
    const char *asked = getenv("OMP_NUM_THREADS"); /* a list has a number for each nesting level */
    return asked ? max_i64(strtoll(asked, NULL, 10), 0) : 0;
}

/* The default number of threads: OMP_NUM_THREADS as OpenMP read it, else one per core. */
static int64_t unset_count(void)
{
    static int by_openmp, processors; /* read at the first call, before threads_set changes them */
    if (!by_openmp) by_openmp = omp_get_max_threads(), processors = omp_get_num_procs();
    return by_openmp == processors ? threads_available() : by_openmp;
}

/* `n`, bounded by OMP_THREAD_LIMIT, which OpenMP always obeys. */
static int64_t limited(int64_t n)
{
    int64_t limit = omp_get_thread_limit();
    return limit > 0 && n > limit ? limit : n;
}

void threads_set(int64_t n)
{
    BUG_IF(n < 0, "%lld threads", (long long)n);
    int64_t available = threads_available();
    n = limited(n ? n : unset_count());
    if (n > available && n != chosen)
        log_warning(
            "%lld threads on %lld cores slow each other down at every barrier; --threads=%lld uses "
            "one thread per core",
            (long long)n, (long long)available, (long long)available);
    chosen = n;
    omp_set_dynamic(0);
    omp_set_num_threads((int)n);
}

int64_t threads_count(void)
{
    return chosen ? chosen : limited(unset_count());
}

void threads_watch(struct threads_watch *w)
{
    watching = w;
}

int64_t threads_begin(void)
{
    return watching ? clock_ns() : 0;
}

void threads_end(int64_t begun)
{
    int thread = omp_get_thread_num();
    if (!begun || thread >= WATCHED_MOST) return;
    busy[thread].ns = clock_ns() - begun;
    busy[thread].begun_ns = begun;
}

void threads_joined(void)
{
    struct threads_watch *w = watching;
    int64_t most = 0;
    if (!w) return;
    for (int i = 0; i < WATCHED_MOST && i < omp_get_max_threads(); i++) {
        if (!busy[i].ns) continue;
        w->busy_ns += busy[i].ns;
        if (w->spans < w->capacity)
            w->span[w->spans++] =
                (struct threads_span){i, busy[i].begun_ns, busy[i].begun_ns + busy[i].ns};
        if (busy[i].ns > most) most = busy[i].ns;
        busy[i].ns = 0;
    }
    w->busiest_ns += most;
    w->regions++;
}

void threads_unseen(void)
{
    if (watching) watching->unseen = true;
}

bool threads_start(pthread_t *ret, void *(*work)(void *user), void *user)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* the thread inherits it */
    bool started = pthread_create(ret, NULL, work, user) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}
