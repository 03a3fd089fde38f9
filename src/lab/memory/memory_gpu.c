/* The memory hierarchy of a GPU. Bandwidth is timed by events of the stream, with kernels that run
 * much longer than a launch takes. Latency is timed inside the kernel, by the clock of the SM and
 * the GPU's timer. One block of 1024 threads runs on each SM. */
#include "base/interrupt.h"
#include "base/stats.h"
#include "base/str.h"
#include "lab/memory/memory.h"
#include "measure/rounds.h"
#include "measure/stopwatch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In the order of memory_gpu_kernels. */
enum gpu_kernel {
    READ,
    READ_SAME,
    WRITE,
    COPY,
    COPY_PAST_L1,
    LINK,
    CHASE,
    SHARED,
    SHARED_CHASE,
    KERNELS
};
static const char *const entries[KERNELS] = {
    "memory_read", "memory_read",  "memory_write",  "memory_copy",        "memory_copy",
    "memory_link", "memory_chase", "memory_shared", "memory_shared_chase"};
const struct lab_rung memory_gpu_kernels[] = {
    [READ] = {"read", "memory/gpu/01_read.cu"},
    [READ_SAME] = {"read the same", "memory/gpu/01_read.cu", .options = "-DPAST_L1=1"},
    [WRITE] = {"write", "memory/gpu/02_write.cu"},
    [COPY] = {"copy", "memory/gpu/03_copy.cu"},
    [COPY_PAST_L1] = {"copy past L1", "memory/gpu/03_copy.cu", .options = "-DPAST_L1=1"},
    [LINK] = {"link", "memory/gpu/04_chase.cu"},
    [CHASE] = {"chase", "memory/gpu/04_chase.cu"},
    [SHARED] = {"shared", "memory/gpu/05_shared.cu"},
    [SHARED_CHASE] = {"shared chase", "memory/gpu/05_shared.cu"},
    [KERNELS] = {0},
};
static const enum gpu_kernel of_curve[] = {READ, WRITE, COPY, READ_SAME};
enum { RATES = COUNT_OF(of_curve) };

/* Sizes are multiples of GRAIN, so that a thread's number of loads is a multiple of UNROLL for some
 * number of passes. */
enum { THREADS = 1024, UNROLL = 8, ACCESS = 16, SMALLEST = 32 << 10, GRAIN = 4 << 10 };
enum { LINE = 128, LEAST_SAMPLES = 3, CHASE_STEPS = 2048, LINKS = 1024, SHARED_WORDS = 2048 };
static const int64_t MOST = 1 << 30;
static const double CALL_MS = 0.5; /* the least time of a launch */
/* Shares of the time limit; the rest is for shared memory and the host link. */
static const double RATES_SHARE = 0.6, CHASES_SHARE = 0.35;

struct work {
    struct memory_run *r;
    struct arena *a;
    const struct backend *backend;
    void *context, *kernel[KERNELS];
    /* Device memory: */
    char *from, *to;        /* memory that kernels read and write; destination of copies */
    uint32_t *sum;          /* of each block */
    uint64_t *clocks, *out; /* of each block; the result of a chase */
    uint32_t *next;         /* the permutation of the chase */
    int64_t bytes;          /* of `from` */
};

/* A kernel at one size. */
struct timed_kernel {
    struct work *w;
    enum gpu_kernel kernel;
    int64_t bytes;  /* the working set of a block */
    int64_t passes; /* per launch */
    struct stopwatch watch;
};

static enum status launch(struct work *w, enum gpu_kernel k, int64_t blocks, int threads,
                          void **argument)
{
    struct kernel_shape s = {{(unsigned)blocks, 1, 1}, {(unsigned)threads, 1, 1}, 0};
    return w->backend->texts->launch(w->context, w->kernel[k], &s, argument);
}

static enum status download(struct work *w, void *to, const void *from, int64_t bytes)
{
    TRY(w->backend->memory.download(w->context, to, from, bytes));
    return w->backend->stream.sync(w->context);
}

/* --- one launch ------------------------------------------------------------------------------- */

static bool copies(enum gpu_kernel k)
{
    return k == COPY || k == COPY_PAST_L1;
}

/* Accesses of 16 bytes in one pass of a block. A copy reads only half of the working set. */
static int64_t accesses(enum gpu_kernel k, int64_t bytes)
{
    return bytes / ACCESS / (copies(k) ? 2 : 1);
}

/* The number of passes is a multiple of this, so that all threads make equally many accesses. */
static int64_t least_passes(enum gpu_kernel k, int64_t bytes)
{
    int64_t n = accesses(k, bytes), a = n, b = THREADS * UNROLL;
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return THREADS * UNROLL / a;
}

/* Launches a kernel; the working set of block 0 begins at `at`. */
static enum status start_at(struct work *w, char *at, enum gpu_kernel k, int64_t bytes,
                            int64_t passes)
{
    int64_t n = accesses(k, bytes), steps = passes * n / THREADS, stride = bytes / ACCESS;
    void *to = w->to, *sum = w->sum, *clocks = w->clocks, *from = at;
    if (k == READ_SAME) stride = 0;
    void *of_read[] = {&sum, &clocks, &from, &n, &stride, &steps};
    void *of_write[] = {&from, &n, &stride, &steps};
    void *of_copy[] = {&to, &from, &n, &stride, &steps};
    return launch(w, k, w->r->units, THREADS,
                  k == WRITE  ? of_write
                  : copies(k) ? of_copy
                              : of_read);
}

static enum status start(void *user, int)
{
    struct timed_kernel *t = user;
    return start_at(t->w, t->w->from, t->kernel, t->bytes, t->passes);
}

static enum status sample(void *user, int calls, double *ret_ms)
{
    struct timed_kernel *t = user;
    return stopwatch_time(&t->watch, calls, ret_ms);
}

/* Checks the sums that a reading kernel computed from the words of the writing kernel. Each block
 * has read `bytes` bytes; the sets of neighboring blocks are `stride` bytes apart. */
static enum status check_sums(struct work *w, int64_t bytes, int64_t stride, int64_t passes)
{
    struct arena a = {0};
    int units = w->r->units, wrong = -1;
    uint32_t *sum = ARENA_NEW(&a, uint32_t, units);
    enum status st = download(w, sum, w->sum, 4 * units);
    for (int b = 0; b < units && st == ST_OK && wrong < 0; b++) {
        uint64_t first = (uint64_t)(b * stride / 4);
        uint32_t expected = memory_sum(first, first + (uint64_t)bytes / 4) * (uint32_t)passes;
        if (sum[b] != expected) wrong = b;
    }
    arena_release(&a);
    if (wrong < 0) return st;
    return fail(ST_NUMERIC,
                "a kernel of lab memory computed something else on block %d at a working set of "
                "%lld bytes; this is an error of Strobe or of the GPU",
                wrong, (long long)bytes);
}

static enum status check_copy(struct work *w, enum gpu_kernel k, int64_t bytes)
{
    int64_t half = bytes / 2;
    TRY(w->backend->memory.fill(w->context, w->to, 0xff, half * w->r->units));
    TRY(start_at(w, w->from, k, bytes, least_passes(k, bytes)));
    TRY(start_at(w, w->to, READ, half, least_passes(READ, half)));
    return check_sums(w, half, bytes, least_passes(READ, half));
}

/* Checks the results of the kernels. `parts` is true if the sets of all blocks fit into w->from. */
static enum status check(struct work *w, int64_t bytes, bool parts)
{
    const struct backend_memory *m = &w->backend->memory;
    int64_t all = bytes * w->r->units, p = least_passes(READ, bytes);
    if (parts) {
        TRY(m->fill(w->context, w->from, 0xff, all));
        TRY(start_at(w, w->from, WRITE, bytes, least_passes(WRITE, bytes)));
        TRY(start_at(w, w->from, READ, bytes, p));
        TRY(check_sums(w, bytes, bytes, p));
    }
    TRY(start_at(w, w->from, READ_SAME, bytes, p));
    TRY(check_sums(w, bytes, 0, p));
    return parts && bytes / 2 >= SMALLEST ? check_copy(w, COPY, bytes) : ST_OK;
}

/* --- bandwidth -------------------------------------------------------------------------------- */

/* Chooses the number of passes such that a launch takes CALL_MS, from the time of a launch with few
 * passes. */
static enum status choose_passes(struct timed_kernel *t, int64_t least)
{
    enum { MOST_MORE = 1 << 14 };
    double ms = 0;
    t->passes = least;
    TRY(stopwatch_time(&t->watch, 1, &ms));
    TRY(stopwatch_time(&t->watch, 1, &ms));
    double more = ms > 0 ? CALL_MS / ms : 1;
    if (more > MOST_MORE) more = MOST_MORE;
    if (more > 1) t->passes = least * (int64_t)more;
    stopwatch_release(&t->watch);
    return ST_OK;
}

static enum status time_kernels(struct work *w, struct timed_kernel *t, int n, double limit_ms,
                                struct contender *c)
{
    const struct memory_options *o = w->r->options;
    struct rounds rounds = {
        .most = o->samples, .least = (int)min_i64(LEAST_SAMPLES, o->samples), .warmup = 1};
    enum status st = ST_OK;
    for (int i = 0; i < n && st == ST_OK; i++) {
        t[i].watch = (struct stopwatch){
            .backend = w->backend, .context = w->context, .start = start, .user = &t[i]};
        c[i] = (struct contender){
            .sample = sample, .user = &t[i], .parts = 1, .budget_ms = limit_ms / n};
        st = choose_passes(&t[i], least_passes(t[i].kernel, t[i].bytes));
    }
    if (st == ST_OK) st = rounds_run(&rounds, c, n);
    for (int i = 0; i < n; i++) stopwatch_release(&t[i].watch);
    return st;
}

/* Makes one more launch; *ret is the median of the blocks' bytes per clock. */
static enum status read_clocks(struct work *w, const struct timed_kernel *t, double *ret)
{
    struct arena a = {0};
    int units = w->r->units;
    uint64_t *clocks = ARENA_NEW(&a, uint64_t, units);
    double *x = ARENA_NEW(&a, double, units);
    enum status st = ST_OK;
    TRY_OUT(st, start_at(w, w->from, t->kernel, t->bytes, t->passes));
    TRY_OUT(st, download(w, clocks, w->clocks, 8 * (int64_t)units));
    for (int b = 0; b < units; b++) x[b] = (double)(t->bytes * t->passes) / (double)clocks[b];
    *ret = stats_of(x, units).median;
out:
    arena_release(&a);
    return st;
}

static enum status measure_rates(struct work *w, int at)
{
    struct memory_run *r = w->r;
    struct timed_kernel t[RATES];
    struct contender c[RATES] = {0};
    int curve[RATES], n = 0;
    int64_t bytes = r->size[at];
    bool parts = bytes <= w->bytes / r->units;
    TRY(check(w, bytes, parts));
    for (int i = 0; i < RATES; i++) {
        if (of_curve[i] != READ_SAME && !parts) continue;
        if (of_curve[i] == COPY && bytes / 2 < SMALLEST) continue;
        t[n] = (struct timed_kernel){.w = w, .kernel = of_curve[i], .bytes = bytes};
        curve[n++] = i;
    }
    TRY(time_kernels(w, t, n, r->options->limit_ms * RATES_SHARE / r->sizes, c));
    for (int i = 0; i < n; i++) {
        double moved = (double)bytes * (double)t[i].passes * r->units;
        r->curve[curve[i]].rate[at] = moved / (c[i].total.median * 1e-3);
        if (t[i].kernel == READ) TRY(read_clocks(w, &t[i], &r->clock_bytes[at]));
    }
    return ST_OK;
}

/* Measures a copy inside L2 as strobe machine does; source and destination have 16 MiB together. */
static enum status measure_l2_copy(struct work *w)
{
    struct memory_run *r = w->r;
    int64_t all = min_i64(min_i64(16 << 20, r->facts.cache_bytes / 2), w->bytes);
    int64_t bytes = all / r->units / GRAIN * GRAIN;
    struct timed_kernel t = {.w = w, .kernel = COPY_PAST_L1, .bytes = bytes};
    struct contender c = {0};
    r->l2_copy_rate = NAN;
    if (bytes / 2 < SMALLEST) return ST_OK;
    TRY(check_copy(w, COPY_PAST_L1, bytes));
    TRY(time_kernels(w, &t, 1, r->options->limit_ms * RATES_SHARE / r->sizes, &c));
    r->l2_copy_rate = (double)(bytes * t.passes * r->units) / (c.total.median * 1e-3);
    return ST_OK;
}

/* --- latency ---------------------------------------------------------------------------------- */

/* Runs one chase that begins at *at, and sets *at to the address at which it ends. */
static enum status chase(struct work *w, uint64_t *at, int64_t warm, int64_t steps, double *ret_ns,
                         double *ret_clocks)
{
    uint64_t out[3];
    void *to = w->out;
    void *argument[] = {&to, at, &warm, &steps};
    TRY(launch(w, CHASE, 1, 1, argument));
    TRY(download(w, out, w->out, sizeof out));
    *at = out[0];
    *ret_clocks = (double)out[1] / (double)steps;
    *ret_ns = (double)out[2] / (double)steps;
    return ST_OK;
}

static enum status link_chain(struct work *w, const uint32_t *next, int64_t lines)
{
    void *line = w->from, *of = w->next;
    int64_t bytes = LINE;
    void *argument[] = {&line, &of, &lines, &bytes};
    TRY(w->backend->memory.upload(w->context, w->next, next, 4 * lines));
    return launch(w, LINK, ceil_div(lines, 256), 256, argument);
}

static uint32_t walk(const uint32_t *next, uint32_t line, int64_t steps)
{
    for (; steps > 0; steps--) line = next[line];
    return line;
}

/* A set that fits into L2 is first read by all SMs. A set that may fit into L1 is walked through at
 * the start of each launch, since a launch begins with an empty L1. Larger sets stay cold. */
static enum status measure_latency(struct work *w, int at, const uint32_t *next)
{
    enum { WALK = 8192, TRIES_MOST = 64 };
    struct memory_run *r = w->r;
    const struct memory_options *o = r->options;
    int64_t bytes = r->size[at], lines = bytes / LINE;
    int tries = (int)min_i64(o->samples, TRIES_MOST);
    double ns[TRIES_MOST], clocks[TRIES_MOST];
    uint64_t begin = (uint64_t)w->from, to = begin;
    TRY(link_chain(w, next, lines));
    if (bytes <= r->facts.cache_bytes)
        TRY(start_at(w, w->from, READ_SAME, bytes, least_passes(READ_SAME, bytes)));
    uint32_t line = 0;
    for (int i = 0; i < tries; i++) {
        bool fits = bytes <= 2 * r->facts.sm_shared_bytes;
        int64_t warm = i == 0 || fits ? min_i64(lines, WALK) : 0;
        TRY(chase(w, &to, warm, CHASE_STEPS, &ns[i], &clocks[i]));
        line = walk(next, line, warm + CHASE_STEPS);
        if (to != begin + (uint64_t)line * LINE)
            return fail(ST_NUMERIC,
                        "the chase of lab memory went astray at a working set of %lld bytes; this "
                        "is an error of Strobe or of the GPU",
                        (long long)bytes);
        if (interrupt_noted()) return fail(ST_INTERRUPTED, "interrupted");
    }
    r->ns[at] = stats_of(ns, tries).median;
    r->clocks[at] = stats_of(clocks, tries).median;
    return ST_OK;
}

static void tell(const struct work *w, double share, const char *what)
{
    const struct memory_options *o = w->r->options;
    if (o->each) o->each(o->user, share, what);
}

static enum status measure_latencies(struct work *w)
{
    struct memory_run *r = w->r;
    struct arena a = {0};
    double hz[MEMORY_SIZES];
    int n = 0;
    uint32_t *next = ARENA_NEW(&a, uint32_t, r->size[r->sizes - 1] / LINE);
    enum status st = ST_OK;
    for (int i = 0; i < r->sizes && st == ST_OK; i++) {
        tell(w, RATES_SHARE + CHASES_SHARE * i / r->sizes, "latency");
        memory_cycle(next, r->size[i] / LINE, r->size[i] / LINE, 1);
        st = measure_latency(w, i, next);
        if (st == ST_OK && r->ns[i] > 0) hz[n++] = r->clocks[i] / r->ns[i] * 1e9;
    }
    if (n) r->clock_hz = stats_of(hz, n).median;
    arena_release(&a);
    return st;
}

/* --- shared memory ---------------------------------------------------------------------------- */

struct memory_level memory_level_unknown(const char *name)
{
    return (struct memory_level){.name = name,
                                 .unit_rate = NAN,
                                 .rate = NAN,
                                 .write_rate = NAN,
                                 .copy_rate = NAN,
                                 .clock_bytes = NAN,
                                 .ns = NAN,
                                 .clocks = NAN};
}

static enum status launch_shared(struct work *w, int64_t steps)
{
    int64_t n = SHARED_WORDS;
    void *sum = w->sum, *clocks = w->clocks, *from = w->from;
    void *argument[] = {&sum, &clocks, &from, &n, &steps};
    return launch(w, SHARED, w->r->units, THREADS, argument);
}

/* *ret is the number of bytes of shared memory that an SM reads per clock: the median of the
 * blocks. */
static enum status shared_rate(struct work *w, int64_t steps, double *ret)
{
    struct arena a = {0};
    int units = w->r->units;
    uint64_t *clocks = ARENA_NEW(&a, uint64_t, units);
    double *x = ARENA_NEW(&a, double, units);
    uint32_t *sum = ARENA_NEW(&a, uint32_t, units);
    enum status st = ST_OK;
    TRY_OUT(st, launch_shared(w, steps));
    TRY_OUT(st, download(w, clocks, w->clocks, 8 * (int64_t)units));
    TRY_OUT(st, download(w, sum, w->sum, 4 * units));
    uint32_t passes = (uint32_t)(steps * THREADS / SHARED_WORDS);
    for (int b = 0; b < units; b++) {
        x[b] = (double)(steps * THREADS * ACCESS) / (double)clocks[b];
        if (sum[b] == passes * memory_sum(0, SHARED_WORDS * ACCESS / 4)) continue;
        st = fail(ST_NUMERIC,
                  "the sum of shared memory is wrong on block %d; this is an error of "
                  "Strobe or of the GPU",
                  b);
        goto out;
    }
    *ret = stats_of(x, units).median;
out:
    arena_release(&a);
    return st;
}

static enum status chase_shared(struct work *w, double *ret_ns, double *ret_clocks)
{
    uint32_t next[LINKS];
    uint64_t out[3];
    int64_t steps = CHASE_STEPS + 1;
    void *to = w->out, *of = w->next;
    void *argument[] = {&to, &of, &steps};
    memory_cycle(next, LINKS, LINKS, 1);
    TRY(w->backend->memory.upload(w->context, w->next, next, sizeof next));
    TRY(launch(w, SHARED_CHASE, 1, 32, argument));
    TRY(download(w, out, w->out, sizeof out));
    if (out[0] != walk(next, 0, steps))
        return fail(ST_NUMERIC, "the chase in shared memory went astray; this is an error of "
                                "Strobe or of the GPU");
    *ret_clocks = (double)out[1] / (double)steps;
    *ret_ns = (double)out[2] / (double)steps;
    return ST_OK;
}

/* Measures shared memory; w->from must contain the words of the writing kernel. */
static enum status measure_shared(struct work *w)
{
    enum { TRIES = 5, STEPS = 4096, FEW = 16 };
    struct memory_run *r = w->r;
    double bytes[TRIES], ns[TRIES], clocks[TRIES];
    int tries = (int)min_i64(TRIES, r->options->samples);
    int64_t steps = r->options->samples < TRIES ? FEW : STEPS;
    for (int i = 0; i < tries; i++) {
        TRY(shared_rate(w, steps, &bytes[i]));
        TRY(chase_shared(w, &ns[i], &clocks[i]));
    }
    struct memory_level *l = &r->level[r->levels++];
    *l = memory_level_unknown("shared memory");
    l->unit_bytes = r->facts.sm_shared_bytes;
    l->bytes = l->unit_bytes * r->units;
    l->clock_bytes = stats_of(bytes, tries).median;
    l->ns = stats_of(ns, tries).median;
    l->clocks = stats_of(clocks, tries).median;
    return ST_OK;
}

/* --- all measurements ------------------------------------------------------------------------- */

static enum status add_kernels(struct work *w)
{
    for (int i = 0; i < KERNELS; i++) {
        const struct lab_rung *k = &memory_gpu_kernels[i];
        int64_t bytes;
        struct kernel_text text = {k->file, lab_source(k, &bytes), k->options ? k->options : "",
                                   entries[i]};
        TRY(w->backend->texts->add(w->context, &text, &w->kernel[i]));
    }
    return ST_OK;
}

static enum status take(struct work *w, int64_t bytes, void *ret)
{
    void *p;
    TRY(w->backend->memory.alloc(w->context, bytes, &p));
    memcpy(ret, &p, sizeof p);
    return ST_OK;
}

static enum status open_work(struct work *w)
{
    enum { OUT_BYTES = 64 };
    struct memory_run *r = w->r;
    const struct memory_options *o = r->options;
    int64_t free_bytes = w->backend->devices.free_memory(o->device.number);
    int64_t largest = min_i64(8 * max_i64(r->facts.cache_bytes, 1 << 20), MOST);
    if (o->largest) largest = o->largest;
    if (free_bytes > 0) largest = min_i64(largest, free_bytes / 3);
    int64_t part = round_up(max_i64(ceil_div(largest, r->units), 2 * SMALLEST), GRAIN);
    w->bytes = part * r->units;
    TRY(w->backend->open(o->device.number, &w->context));
    TRY(add_kernels(w));
    TRY(take(w, w->bytes, &w->from));
    TRY(take(w, w->bytes / 2, &w->to));
    TRY(take(w, 4 * (int64_t)r->units, &w->sum));
    TRY(take(w, 8 * (int64_t)r->units, &w->clocks));
    TRY(take(w, OUT_BYTES, &w->out));
    TRY(take(w, 4 * max_i64(w->bytes / LINE, LINKS), &w->next));
    r->sizes = memory_sizes(SMALLEST, w->bytes, GRAIN, r->size);
    return start_at(w, w->from, WRITE, part, least_passes(WRITE, part));
}

static void close_work(struct work *w)
{
    void *const block[] = {w->from, w->to, w->sum, w->clocks, w->out, w->next};
    if (!w->context) return;
    for (int i = 0; i < COUNT_OF(block); i++)
        if (block[i]) w->backend->memory.free(w->context, block[i]);
    for (int i = 0; i < KERNELS; i++)
        if (w->kernel[i]) w->backend->texts->free(w->context, w->kernel[i]);
    w->backend->close(w->context);
}

static void name_curves(struct memory_run *r)
{
    static const char *const names[RATES] = {"read, all SMs", "write, all SMs", "copy, all SMs",
                                             "read the same, all SMs"};
    for (int i = 0; i < RATES; i++) {
        r->curve[r->curves].name = names[i];
        r->curve[r->curves++].units = r->units;
    }
}

static void add_registers(struct memory_run *r)
{
    struct memory_level *l = &r->level[r->levels++];
    *l = memory_level_unknown("registers");
    l->unit_bytes = 4 * (int64_t)r->facts.sm_registers;
    l->bytes = l->unit_bytes * r->units;
}

/* L1 and shared memory are one memory of an SM: L1 is the part that no block uses. */
static void add_caches(struct memory_run *r)
{
    const struct device_facts *f = &r->facts;
    if (f->sm_shared_bytes)
        r->cache[r->caches++] = (struct memory_cache){"L1", f->sm_shared_bytes, 1};
    if (f->cache_bytes)
        r->cache[r->caches++] = (struct memory_cache){"L2", f->cache_bytes, r->units};
}

static enum status measure(struct work *w)
{
    struct memory_run *r = w->r;
    TRY(measure_shared(w));
    for (int i = 0; i < r->sizes; i++) {
        tell(w, RATES_SHARE * i / r->sizes, "bandwidth");
        TRY(measure_rates(w, i));
    }
    TRY(measure_l2_copy(w));
    TRY(measure_latencies(w));
    tell(w, RATES_SHARE + CHASES_SHARE, "host link");
    return memory_run_link(r, w->context, w->from, w->bytes);
}

enum status memory_run_gpu(struct memory_run *r, struct arena *a)
{
    struct work w = {.r = r, .a = a, .backend = r->options->device.backend};
    r->units = r->cores = r->facts.processors;
    add_registers(r);
    add_caches(r);
    name_curves(r);
    enum status st = open_work(&w);
    if (st == ST_OK) st = measure(&w);
    close_work(&w);
    struct memory_level *shared = &r->level[1]; /* after the registers */
    shared->unit_rate = shared->clock_bytes * r->clock_hz;
    shared->rate = shared->unit_rate * r->units;
    return st;
}
