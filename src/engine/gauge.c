#include "engine/gauge.h"

#include "backend/backend.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/str.h"
#include "base/threads.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Capacity for pending readings; CHANGES of them are reserved for the start and end of work. */
enum { PENDING = 64, CHANGES = 16, CAPACITY = PENDING + CHANGES };

/* Values weighted by the time that they cover. */
struct weighted {
    double sum, ms, min, max;
};

struct sum {
    double ms, throttle_ms, by[THROTTLE_COUNT], throttle_known_ms, energy_j, energy_ms;
    struct weighted value[GAUGE_VALUES];
    double others_ms, others_known_ms; /* time with other programs on the GPU; time when known */
    int reasons, samples, other;
    bool idle; /* part of the time was not work */
};

struct gauge {
    const struct backend *backend;
    void *context;
    int64_t interval_ms;
    atomic_llong iter;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t sampling; /* Held while the device is queried, which may take long. */
    /* Guards the members below; held only briefly, so the work never waits for a sample. */
    pthread_mutex_t lock;
    pthread_cond_t stop_changed;
    bool stop;
    bool working;
    struct device_sample last;
    int64_t last_ns;
    struct sum open; /* the unfinished reading */
    struct sum all;  /* over all work */
    int stride;      /* samples per reading */
    int readings;    /* since the stride changed */
    struct gauge_reading pending[CAPACITY];
    int first, pendings;
    double queried_ms; /* time spent in `queries` queries of the device */
    int queries;
};

/* --- sums over samples ------------------------------------------------------------------------ */

static void weigh(struct weighted *w, double x, double ms)
{
    if (x < 0) return;
    w->min = w->ms > 0 ? fmin(w->min, x) : x;
    w->max = w->ms > 0 ? fmax(w->max, x) : x;
    w->sum += x * ms;
    w->ms += ms;
}

static double mean(const struct weighted *w)
{
    return w->ms > 0 ? w->sum / w->ms : NAN;
}

/* Energy in joules between two samples: power times time if the counter was reset. -1: unknown. */
static double energy_between(const struct device_sample *from, const struct device_sample *to,
                             double ms)
{
    if (from->energy_j >= 0 && to->energy_j >= from->energy_j) return to->energy_j - from->energy_j;
    return to->power_w >= 0 ? to->power_w * ms * 1e-3 : -1;
}

static void add_sample(struct sum *s, const struct device_sample *before,
                       const struct device_sample *x, double ms)
{
    const double known[GAUGE_VALUES] = {x->utilization,  x->clock_mhz,     x->power_w,
                                        x->memory_bytes, x->temperature_c, x->memory_utilization,
                                        x->sm_active,    x->tensor_active, x->dram_active};
    double energy = energy_between(before, x, ms);
    s->ms += ms;
    s->samples++;
    for (int i = 0; i < GAUGE_VALUES; i++) weigh(&s->value[i], known[i], ms);
    if (energy >= 0) {
        s->energy_j += energy;
        s->energy_ms += ms;
    }
    if (x->other_programs >= 0) s->others_known_ms += ms;
    if (x->other_programs > 0) {
        s->others_ms += ms;
        s->other = x->other_pid;
    }
    if (x->throttle < 0) return;
    s->throttle_known_ms += ms;
    s->reasons |= x->throttle;
    if (throttle_slows(x->throttle)) s->throttle_ms += ms;
    for (int i = 0; i < THROTTLE_COUNT; i++)
        if (x->throttle >> i & 1) s->by[i] += ms;
}

static double known(double x)
{
    return x >= 0 ? x : NAN;
}

static double share(double ms, double of)
{
    return of > 0 ? ms / of : NAN;
}

/* --- samples and readings --------------------------------------------------------------------- */

/* Finishes the present reading, unless `most` readings are pending; then the reading continues. */
static void close_reading(struct gauge *g, int most)
{
    struct sum *s = &g->open;
    struct gauge_reading r = {.iter = atomic_load(&g->iter),
                              .ms = s->ms,
                              .steady = !s->idle,
                              .clock_max_mhz = known(g->last.clock_max_mhz),
                              .power_limit_w = known(g->last.power_limit_w),
                              .throttled = share(s->throttle_ms, s->throttle_known_ms),
                              .throttle = s->reasons};
    if (s->samples == 0 || g->pendings >= most) return;
    for (int i = 0; i < GAUGE_VALUES; i++) r.value[i] = mean(&s->value[i]);
    g->pending[(g->first + g->pendings++) % CAPACITY] = r;
    *s = (struct sum){0};
    if (++g->readings < GAUGE_READINGS) return;
    g->readings = 0;
    g->stride *= 2;
}

static enum status sample(struct gauge *g)
{
    struct device_sample x;
    pthread_mutex_lock(&g->sampling);
    int64_t from_ns = clock_ns();
    enum status st = g->backend->telemetry->sample(g->context, &x);
    int64_t now_ns = clock_ns();
    if (st == ST_OK) {
        pthread_mutex_lock(&g->lock);
        double ms = clock_ms(g->last_ns, now_ns);
        if (g->last_ns) add_sample(&g->open, &g->last, &x, ms);
        g->open.idle |= !g->working;
        if (g->last_ns && g->working) add_sample(&g->all, &g->last, &x, ms);
        if (g->last_ns) { /* the first query also opens the library, so it does not count */
            g->queried_ms += clock_ms(from_ns, now_ns);
            g->queries++;
        }
        g->last = x;
        g->last_ns = now_ns;
        if (g->open.samples >= g->stride) close_reading(g, PENDING);
        pthread_mutex_unlock(&g->lock);
    }
    pthread_mutex_unlock(&g->sampling);
    return st;
}

/* --- the thread ------------------------------------------------------------------------------- */

static void add_ms(struct timespec *t, int64_t ms)
{
    enum { SECOND_NS = 1000000000, MS_NS = 1000000 };
    int64_t ns = t->tv_nsec + ms % 1000 * MS_NS;
    t->tv_sec += ms / 1000 + ns / SECOND_NS;
    t->tv_nsec = ns % SECOND_NS;
}

/* A failed sample is ignored: the next sample covers its time, too. */
static void *watch(void *argument)
{
    struct gauge *g = argument;
    struct timespec due;
    threads_unbind();
    pthread_mutex_lock(&g->lock);
    while (!g->stop) {
        clock_gettime(CLOCK_MONOTONIC, &due);
        add_ms(&due, g->interval_ms);
        while (!g->stop && pthread_cond_timedwait(&g->stop_changed, &g->lock, &due) != ETIMEDOUT) {}
        if (g->stop) break;
        pthread_mutex_unlock(&g->lock);
        (void)sample(g);
        pthread_mutex_lock(&g->lock);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static enum status start(struct gauge *g)
{
    g->has_thread = threads_start(&g->thread, watch, g);
    return g->has_thread ? ST_OK : fail(ST_IO, "cannot start a thread for telemetry");
}

enum status gauge_open(struct gauge **ret, const struct backend *b, void *context,
                       int64_t interval_ms)
{
    if (!b->telemetry) return fail(ST_UNSUPPORTED, "%s devices have no telemetry", b->name);
    struct gauge *g = HEAP_NEW(struct gauge, 1);
    g->backend = b;
    g->context = context;
    g->interval_ms = interval_ms;
    g->stride = 1;
    g->last = sample_unknown;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&g->sampling, NULL);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->stop_changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    enum status st = sample(g);
    if (st == ST_OK && interval_ms > 0) st = start(g);
    if (st == ST_OK)
        *ret = g;
    else
        gauge_close(g);
    return st;
}

void gauge_close(struct gauge *g)
{
    if (!g) return;
    pthread_mutex_lock(&g->lock);
    g->stop = true;
    pthread_cond_signal(&g->stop_changed);
    pthread_mutex_unlock(&g->lock);
    if (g->has_thread) pthread_join(g->thread, NULL);
    pthread_mutex_destroy(&g->sampling);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->stop_changed);
    free(g);
}

/* --- printing --------------------------------------------------------------------------------- */

void gauge_print(const struct gauge_summary *g, struct str *s)
{
    double busy = g->value[GAUGE_UTILIZATION].mean, mhz = g->value[GAUGE_CLOCK].mean;
    double watt = g->value[GAUGE_POWER].mean;
    const char *gap = "";
    if (!gauge_is_enough(g)) return;
    if (busy >= 0) str_printf(s, "%.0f %% busy", busy), gap = ", ";
    if (mhz >= 0) str_printf(s, "%s%.0f", gap, mhz), gap = ", ";
    if (mhz >= 0 && g->clock_max_mhz > 0) str_printf(s, " of %.0f", g->clock_max_mhz);
    if (mhz >= 0) str_append(s, " MHz");
    if (watt >= 0) str_printf(s, "%s%.0f W", gap, watt);
    if (!(g->throttled > 0)) return;
    str_printf(s, "; slowed in %.1f %% of the time by ", 100 * g->throttled);
    gap = "";
    for (int i = 0; i < g->reasons; i++)
        if (strcmp(g->by[i].name, throttle_name(THROTTLE_USER)) != 0)
            str_printf(s, "%s%s", gap, g->by[i].name), gap = ", ";
}

void gauge_print_last(struct gauge *g, char *text, int bytes)
{
    int n = 0;
    pthread_mutex_lock(&g->lock);
    struct device_sample x = g->last;
    pthread_mutex_unlock(&g->lock);
    const struct {
        const char *format;
        double known;
    } part[] = {{"  %.0f %%", x.utilization}, {"  %.0f MHz", x.clock_mhz}, {"  %.0f W", x.power_w}};
    text[0] = '\0';
    for (int i = 0; i < COUNT_OF(part) && n < bytes; i++)
        if (part[i].known >= 0)
            n += snprintf(text + n, (size_t)(bytes - n), part[i].format, part[i].known);
}

/* --- calls from the training thread ----------------------------------------------------------- */

void gauge_work(struct gauge *g, bool working)
{
    (void)sample(g);
    pthread_mutex_lock(&g->lock);
    if (working != g->working) close_reading(g, CAPACITY);
    g->working = working;
    pthread_mutex_unlock(&g->lock);
}

void gauge_at(struct gauge *g, int64_t iter)
{
    atomic_store(&g->iter, iter);
}

bool gauge_take(struct gauge *g, bool all, struct gauge_reading *ret)
{
    pthread_mutex_lock(&g->lock);
    if (all && !g->pendings) close_reading(g, PENDING);
    bool found = g->pendings > 0;
    if (found) {
        *ret = g->pending[g->first];
        g->first = (g->first + 1) % CAPACITY;
        g->pendings--;
    }
    pthread_mutex_unlock(&g->lock);
    return found;
}

bool gauge_is_enough(const struct gauge_summary *g)
{
    return g->samples >= GAUGE_ENOUGH &&
           g->seconds * 1e3 >= (double)(GAUGE_ENOUGH * g->interval_ms);
}

struct gauge_summary gauge_summarize(struct gauge *g)
{
    pthread_mutex_lock(&g->lock);
    const struct sum *s = &g->all;
    struct gauge_summary r = {.seconds = s->ms * 1e-3,
                              .samples = s->samples,
                              .interval_ms = g->interval_ms,
                              .sample_ms = share(g->queried_ms, g->queries),
                              .clock_max_mhz = known(g->last.clock_max_mhz),
                              .power_limit_w = known(g->last.power_limit_w),
                              .energy_j = s->energy_ms > 0 ? s->energy_j : NAN,
                              .joules_per_token = NAN,
                              .throttled = share(s->throttle_ms, s->throttle_known_ms),
                              .others = share(s->others_ms, s->others_known_ms),
                              .other = s->other};
    for (int i = 0; i < THROTTLE_COUNT; i++)
        if (s->by[i] > 0)
            r.by[r.reasons++] =
                (struct figure){throttle_name(i), share(s->by[i], s->throttle_known_ms)};
    for (int i = 0; i < GAUGE_VALUES; i++) {
        const struct weighted *w = &s->value[i];
        r.value[i] =
            (struct gauge_range){mean(w), w->ms > 0 ? w->min : NAN, w->ms > 0 ? w->max : NAN};
    }
    if (s->energy_ms > 0) r.value[GAUGE_POWER].mean = s->energy_j / (s->energy_ms * 1e-3);
    pthread_mutex_unlock(&g->lock);
    return r;
}
