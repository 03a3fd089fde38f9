/* Operators on a CPU: with a team of threads for each operator, with one team for all operators,
 * and on one thread. */
#include "base/clock.h"
#include "base/heap.h"
#include "base/threads.h"
#include "lab/launch/launch_parts.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

LAB_CPU_DECLARE(launch_add);
const struct lab_rung launch_cpu_kernels[] = {
    {"add", "launch/cpu/01_add.c", .run = LAB_CPU(launch_add)}, {0}};

enum { GRAIN = 64 }; /* floats: a multiple of the floats in one iteration of the kernel */
static const int64_t sizes[] = {256, 4096, 16384, 65536, 262144}; /* ascending */

/* All operators of a sample, and the way in which they are started. */
struct work {
    const struct launch_point *point;
    lab_fn add;
    float *y;
    int threads, operators;
};

/* The calling thread's part of an operator. */
static void add_part(const struct work *w, int threads, int64_t additions)
{
    int64_t n = w->point->floats, each = round_up(ceil_div(n, threads), GRAIN);
    int64_t from = min_i64(n, each * (threads == 1 ? 0 : omp_get_thread_num()));
    int64_t part = min_i64(each, n - from);
    w->add(&(struct lab_call){.out = w->y + from, .n = {part, additions}, .threads = 1});
}

static void run_empty(const struct work *w)
{
    for (int k = 0; k < w->operators; k++) {
#pragma omp parallel num_threads(w->threads)
        __asm__ volatile(""); /* keeps the compiler from removing the region */
    }
}

static void run_serial(const struct work *w)
{
    for (int k = 0; k < w->operators; k++) add_part(w, 1, 1);
}

static void run_teams(const struct work *w)
{
    for (int k = 0; k < w->operators; k++) {
#pragma omp parallel num_threads(w->threads)
        add_part(w, w->threads, 1);
    }
}

static void run_one_team(const struct work *w)
{
#pragma omp parallel num_threads(w->threads)
    for (int k = 0; k < w->operators; k++) {
        add_part(w, w->threads, 1);
#pragma omp barrier
    }
}

static void run_fused(const struct work *w)
{
#pragma omp parallel num_threads(w->threads)
    add_part(w, w->threads, w->operators);
}

enum kind { EMPTY, SERIAL, TEAMS, ONE_TEAM, FUSED, KINDS };
static const struct {
    struct launch_way way;
    void (*run)(const struct work *w);
} ways[] = {
    [EMPTY] = {{"empty region"}, run_empty},    [SERIAL] = {{"one thread", true}, run_serial},
    [TEAMS] = {{"a team for each"}, run_teams}, [ONE_TEAM] = {{"one team"}, run_one_team},
    [FUSED] = {{"fused"}, run_fused},
};

static void run_work(const struct work *w)
{
    for (int k = 0; k < KINDS; k++)
        if (w->point->way == &ways[k].way) ways[k].run(w);
}

static enum status sample(void *user, int, double *ret_ms)
{
    const struct work *w = user;
    int64_t start = clock_ns();
    run_work(w);
    *ret_ms = clock_ms(start, clock_ns());
    return ST_OK;
}

static enum status check(const struct work *w)
{
    if (!w->point->floats) return ST_OK;
    memset(w->y, 0, (size_t)w->point->floats * sizeof *w->y);
    run_work(w);
    return launch_check(w->y, w->point->floats, NULL, w->operators, w->point->way->name);
}

static void add_points(struct launch_run *r)
{
    r->point[r->points++] = (struct launch_point){.way = &ways[EMPTY].way};
    for (int i = 0; i < COUNT_OF(sizes); i++)
        for (int k = SERIAL; k < KINDS; k++)
            r->point[r->points++] =
                (struct launch_point){.way = &ways[k].way, .floats = sizes[i], .additions = 1};
}

static enum status measure(struct launch_run *r, float *y, struct arena *a)
{
    struct work work[LAUNCH_POINTS];
    struct contender c[LAUNCH_POINTS] = {0};
    for (int i = 0; i < r->points; i++) {
        work[i] = (struct work){.point = &r->point[i],
                                .add = lab_function(&launch_cpu_kernels[0]),
                                .y = y,
                                .threads = r->threads,
                                .operators = r->options->launches};
        c[i] = (struct contender){.sample = sample, .user = &work[i], .parts = 1};
        TRY(check(&work[i]));
    }
    TRY(launch_time(r, c, r->points, 0, 1, "operators in turns", a));
    for (int i = 0; i < r->points; i++) r->point[i].time = c[i];
    return ST_OK;
}

enum status launch_run_cpu(struct launch_run *r, struct arena *a)
{
    r->threads = (int)threads_count();
    add_points(r);
    float *y = heap_aligned(64, sizes[COUNT_OF(sizes) - 1] * (int64_t)sizeof *y);
    enum status st = measure(r, y, a);
    free(y);
    if (st != ST_OK) return st;
    for (int i = 0; i < r->points; i++) {
        double ms = r->point[i].time.total.median / r->options->launches;
        if (r->point[i].way == &ways[SERIAL].way) r->alone[r->works++] = ms;
        if (r->point[i].way == &ways[TEAMS].way) r->started[r->works - 1] = ms;
    }
    return ST_OK;
}
