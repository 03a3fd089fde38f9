#include "lab/launch/launch_parts.h"

#include <math.h>

enum { LEAST = 3 };

/* Starting costs nothing if, on a GPU, launched kernels are at most a tenth slower than kernels of
 * a replayed graph; on a CPU, if a team of threads is at least as fast as one thread. */
static const double GPU_MOST = 1.1, CPU_MOST = 1;

int launch_from(const double *alone, const double *started, int n, double most)
{
    int from = n;
    while (from > 0 && started[from - 1] <= most * alone[from - 1]) from--;
    return from < n ? from : -1;
}

double launch_hidden(const double *part, int parts, double overlapped)
{
    double sum = 0, longest = 0;
    for (int i = 0; i < parts; i++) {
        sum += part[i];
        longest = fmax(longest, part[i]);
    }
    if (sum <= longest) return NAN;
    return fmin(fmax((sum - overlapped) / (sum - longest), 0), 1);
}

enum status launch_check(const float *y, int64_t n, double (*first)(int64_t), double added,
                         const char *way)
{
    for (int64_t i = 0; i < n; i++) {
        double wanted = (first ? first(i) : 0) + added;
        if (y[i] != wanted)
            return fail(ST_NUMERIC,
                        "lab launch, %s: element %lld is %g instead of %g; this is an error of "
                        "Strobe or of the device: try another --device",
                        way, (long long)i, (double)y[i], wanted);
    }
    return ST_OK;
}

/* --- time ------------------------------------------------------------------------------------- */

struct progress_part {
    const struct launch_options *o;
    double from, share;
    const char *what;
};

static void tell(void *user, double done_ms, double expected_ms)
{
    const struct progress_part *p = user;
    double done = expected_ms > 0 ? fmin(done_ms / expected_ms, 1) : 0;
    if (p->o->each) p->o->each(p->o->user, p->from + p->share * done, p->what);
}

enum status launch_time(struct launch_run *r, struct contender *c, int n, double from, double share,
                        const char *what, struct arena *a)
{
    const struct launch_options *o = r->options;
    struct progress_part part = {o, from, share, what};
    const struct rounds rounds = {.most = o->samples,
                                  .least = (int)min_i64(LEAST, o->samples),
                                  .warmup = LAUNCH_WARMUP - 1,
                                  .keep = a,
                                  .each = tell,
                                  .user = &part};
    for (int i = 0; i < n; i++) {
        c[i].one_by_one = true;
        c[i].budget_ms = share * o->limit_ms / n;
    }
    return rounds_run(&rounds, c, n);
}

enum status launch_measure(const struct launch_options *o, struct launch_run *ret, struct arena *a)
{
    *ret = (struct launch_run){.options = o, .gpu = o->device.backend->texts != NULL};
    TRY(ret->gpu ? launch_run_gpu(ret, a) : launch_run_cpu(ret, a));
    ret->from = launch_from(ret->alone, ret->started, ret->works, ret->gpu ? GPU_MOST : CPU_MOST);
    return ST_OK;
}
