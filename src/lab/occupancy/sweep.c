#include "lab/occupancy/sweep.h"

#include "base/str.h"
#include "measure/stopwatch.h"

#include <string.h>

/* The kernel is compiled once for each of these values of KEPT, the number of registers that a
 * thread keeps occupied. */
#define KEPT_LIST(X) X(16) X(24) X(40) X(56) X(72) X(88) X(120) X(184)
#define NUMBER(n)    n,
#define RUNG(n)      {.name = "sum", .file = "occupancy/gpu/01_sum.cu", .options = "-DKEPT=" #n},
static const int kept[] = {KEPT_LIST(NUMBER)};
const struct lab_rung sweep_kernels[] = {KEPT_LIST(RUNG){0}};
static const int resident[] = {12, 10, 8, 6, 5, 4, 3, 2, 1}; /* blocks that shared memory allows */
enum { KERNELS = COUNT_OF(kept), FILL = 1, LEAST = 5, WARMUP = 2, ACCESS = SWEEP_UNDER_WAY };
static const uint32_t WORD = 0x01010101; /* a word of memory filled with FILL */
static const double SAMPLE_MS = 2;

struct sweep {
    struct sweep_run *r;
    const struct backend *backend;
    void *context, *kernel[KERNELS], *from, *sum;
    int64_t most_blocks; /* the largest grid of all points */
};

struct timed_point {
    struct sweep *s;
    const struct sweep_point *point;
    int kernel;
    struct stopwatch watch;
};

static struct kernel_shape shape_of(const struct sweep *s, const struct sweep_point *p)
{
    unsigned blocks = (unsigned)(p->occupancy.blocks * s->r->processors);
    return (struct kernel_shape){{blocks, 1, 1}, {SWEEP_THREADS, 1, 1}, (int)p->dynamic_bytes};
}

static enum status start(void *user, int)
{
    struct timed_point *t = user;
    struct sweep *s = t->s;
    struct kernel_shape shape = shape_of(s, t->point);
    int64_t n = s->r->bytes / ACCESS;
    void *argument[] = {&s->sum, &s->from, &n};
    return s->backend->texts->launch(s->context, s->kernel[t->kernel], &shape, argument);
}

static enum status sample(void *user, int calls, double *ret_ms)
{
    struct timed_point *t = user;
    return stopwatch_time(&t->watch, calls, ret_ms);
}

/* --- points ----------------------------------------------------------------------------------- */

/* Finds a point's resources and blocks per SM. Resources that the driver does not report are 0. */
static enum status examine(struct sweep *s, int kernel, struct sweep_point *p)
{
    struct kernel_shape shape = {{1, 1, 1}, {SWEEP_THREADS, 1, 1}, (int)p->dynamic_bytes};
    TRY(s->backend->texts->resources(s->context, s->kernel[kernel], &shape, &p->taken));
    int64_t shared = p->taken.shared_bytes - p->dynamic_bytes;
    const struct occupancy_kernel k = {.threads = SWEEP_THREADS,
                                       .registers = p->taken.registers > 0 ? p->taken.registers : 0,
                                       .static_bytes = shared > 0 ? shared : 0,
                                       .dynamic_bytes = p->dynamic_bytes};
    occupancy_of(occupancy_limits(s->r->arch), &k, &p->occupancy);
    s->most_blocks = max_i64(s->most_blocks, (int64_t)p->occupancy.blocks * s->r->processors);
    s->r->disagree += p->taken.blocks > 0 && p->taken.blocks != p->occupancy.blocks;
    return ST_OK;
}

/* Adds a point for each number of registers; then, with the fewest registers, a point for each
 * number of resident blocks that is smaller than without shared memory. */
static enum status add_points(struct sweep *s, struct timed_point *t)
{
    struct sweep_run *r = s->r;
    const struct occupancy_limits *l = occupancy_limits(r->arch);
    for (int k = 0; k < KERNELS; k++) {
        struct sweep_point *p = &r->point[r->points];
        *p = (struct sweep_point){.what = "registers"};
        TRY(examine(s, k, p));
        t[r->points++] = (struct timed_point){.s = s, .point = p, .kernel = k};
    }
    int most = r->point[0].occupancy.blocks;
    for (int i = 0; i < COUNT_OF(resident); i++) {
        struct sweep_point *p = &r->point[r->points];
        int64_t each = l->shared_bytes / resident[i] / l->shared_unit * l->shared_unit;
        each = min_i64(each - l->reserved_bytes, l->block_shared_bytes);
        if (resident[i] >= most) continue;
        *p = (struct sweep_point){.what = "shared memory", .dynamic_bytes = each};
        TRY(examine(s, 0, p));
        t[r->points++] = (struct timed_point){.s = s, .point = p, .kernel = 0};
    }
    return ST_OK;
}

/* --- checks ----------------------------------------------------------------------------------- */

static uint32_t thread_sum(int64_t loads, int words)
{
    uint32_t all = (uint32_t)loads * (ACCESS / 4) * WORD;
    for (int k = 0; k < words; k++) all = (all ^ WORD) * 16777619u;
    return all;
}

/* The sum that all blocks must compute. Some threads make one load more than others. */
static uint32_t whole_sum(const struct sweep *s, const struct timed_point *t)
{
    struct kernel_shape shape = shape_of(s, t->point);
    int64_t threads = (int64_t)shape.grid[0] * SWEEP_THREADS, n = s->r->bytes / ACCESS;
    int64_t loads = n / threads, more = n % threads;
    return (uint32_t)more * thread_sum(loads + 1, kept[t->kernel]) +
           (uint32_t)(threads - more) * thread_sum(loads, kept[t->kernel]);
}

static enum status check(struct sweep *s, struct timed_point *t)
{
    const struct backend_memory *m = &s->backend->memory;
    struct arena a = {0};
    unsigned blocks = shape_of(s, t->point).grid[0];
    uint32_t *sum = ARENA_NEW(&a, uint32_t, blocks), all = 0;
    enum status st = ST_OK;
    TRY_OUT(st, m->fill(s->context, s->sum, 0, 4 * s->most_blocks));
    TRY_OUT(st, start(t, 0));
    TRY_OUT(st, m->download(s->context, sum, s->sum, 4 * (int64_t)blocks));
    TRY_OUT(st, s->backend->stream.sync(s->context));
    for (unsigned b = 0; b < blocks; b++) all += sum[b];
    if (all != whole_sum(s, t))
        st = fail(ST_NUMERIC,
                  "the kernel of lab occupancy computed a wrong sum with %d registers and %lld "
                  "bytes of shared memory; this is an error of Strobe or of the GPU",
                  t->point->taken.registers, (long long)t->point->dynamic_bytes);
out:
    arena_release(&a);
    return st;
}

/* --- all -------------------------------------------------------------------------------------- */

static enum status open_sweep(struct sweep *s)
{
    struct sweep_run *r = s->r;
    struct device_facts f;
    struct target target;
    const struct device *d = &r->options->device;
    if (!s->backend->texts)
        return fail(ST_UNSUPPORTED,
                    "lab occupancy needs a GPU. Without a GPU, strobe plan CONFIG --device=cuda "
                    "--occupancy computes the occupancy of each kernel of a plan");
    TRY(backend_target(s->backend, d->number, &target));
    TRY(s->backend->devices.describe(d->number, &f));
    r->arch = target.arch;
    r->processors = f.processors;
    if (!occupancy_limits(r->arch))
        return fail(ST_UNSUPPORTED,
                    "Strobe does not know the registers and shared memory of an SM of compute "
                    "capability %d.%d",
                    r->arch / 10, r->arch % 10);
    int64_t least = 4096, bytes = r->options->bytes;
    r->bytes = round_up(max_i64(bytes ? bytes : 16 * f.cache_bytes, least), ACCESS);
    TRY(s->backend->open(d->number, &s->context));
    TRY(s->backend->memory.alloc(s->context, r->bytes, &s->from));
    for (int k = 0; k < KERNELS; k++) {
        const struct lab_rung *of = &sweep_kernels[k];
        int64_t size;
        const struct kernel_text text = {of->file, lab_source(of, &size), of->options, "occupancy"};
        TRY(s->backend->texts->add(s->context, &text, &s->kernel[k]));
    }
    return s->backend->memory.fill(s->context, s->from, FILL, r->bytes);
}

static void close_sweep(struct sweep *s)
{
    if (!s->context) return;
    if (s->from) s->backend->memory.free(s->context, s->from);
    if (s->sum) s->backend->memory.free(s->context, s->sum);
    for (int k = 0; k < KERNELS; k++)
        if (s->kernel[k]) s->backend->texts->free(s->context, s->kernel[k]);
    s->backend->close(s->context);
}

static void show_times(void *user, double done_ms, double expected_ms)
{
    const struct sweep_options *o = user;
    if (o->each)
        o->each(o->user, expected_ms > 0 ? done_ms / expected_ms : 0,
                "timing all variants alternately");
}

static enum status time_points(struct sweep *s, struct timed_point *t, struct arena *a)
{
    struct sweep_run *r = s->r;
    const struct sweep_options *o = r->options;
    struct contender c[SWEEP_POINTS] = {0};
    const struct rounds rounds = {.most = o->samples,
                                  .least = (int)min_i64(LEAST, o->samples),
                                  .warmup = WARMUP,
                                  .cold = 1,
                                  .keep = a,
                                  .go_on = o->go_on,
                                  .sample_ms = s->backend->recording ? SAMPLE_MS : 0,
                                  .each = show_times,
                                  .user = (void *)o};
    for (int i = 0; i < r->points; i++) {
        t[i].watch = (struct stopwatch){
            .backend = s->backend, .context = s->context, .start = start, .user = &t[i]};
        c[i] = (struct contender){
            .sample = sample, .user = &t[i], .parts = 1, .budget_ms = o->limit_ms / r->points};
    }
    enum status st = rounds_run(&rounds, c, r->points);
    for (int i = 0; i < r->points; i++) {
        stopwatch_release(&t[i].watch);
        r->point[i].time = c[i];
    }
    return st;
}

static enum status measure(struct sweep *s, struct timed_point *t, struct arena *a)
{
    TRY(open_sweep(s));
    TRY(add_points(s, t));
    TRY(s->backend->memory.alloc(s->context, 4 * s->most_blocks, &s->sum));
    for (int i = 0; i < s->r->points; i++) TRY(check(s, &t[i]));
    TRY(time_points(s, t, a));
    return ST_OK;
}

enum status sweep_run(const struct sweep_options *o, struct sweep_run *ret, struct arena *a)
{
    struct sweep s = {.r = ret, .backend = o->device.backend};
    struct timed_point t[SWEEP_POINTS];
    *ret = (struct sweep_run){.options = o};
    enum status st = measure(&s, t, a);
    close_sweep(&s);
    return st;
}
