/* The memory hierarchy of a CPU. For each size, the bandwidth of all kernels is timed in turns, and
 * then the latency by a chase in the memory of one thread. Two measures keep TLB misses out of the
 * latency: large pages, if the system provides them, and a chase that visits all lines of 128 KiB
 * before it goes on to the next 128 KiB. Large pages alone do not suffice in a virtual machine
 * whose memory the host maps with small pages. */
#include "base/clock.h"
#include "base/free_memory.h"
#include "base/stats.h"
#include "base/str.h"
#include "base/threads.h"
#include "lab/memory/memory.h"
#include "measure/rounds.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

LAB_CPU_DECLARE(memory_read);
LAB_CPU_DECLARE(memory_write);
LAB_CPU_DECLARE(memory_copy);
LAB_CPU_DECLARE(memory_chase);
LAB_CPU_DECLARE(memory_clock);
enum kind { READ, WRITE, COPY, CHASE, CLOCK, KINDS };
const struct lab_rung memory_cpu_kernels[] = {
    [READ] = {"read", "memory/cpu/01_read.c", .run = LAB_CPU(memory_read)},
    [WRITE] = {"write", "memory/cpu/02_write.c", .run = LAB_CPU(memory_write)},
    [COPY] = {"copy", "memory/cpu/03_copy.c", .run = LAB_CPU(memory_copy)},
    [CHASE] = {"chase", "memory/cpu/04_chase.c", .run = LAB_CPU(memory_chase)},
    [CLOCK] = {"clock", "memory/cpu/05_clock.c", .run = LAB_CPU(memory_clock)},
    [KINDS] = {0},
};

/* Sizes are multiples of GRAIN, so that no kernel has a remainder. GROUP, the bytes of a group of a
 * chase, are 32 pages of 4 KiB, which the first-level TLB of every processor holds. */
enum {
    SMALLEST = 4 << 10,
    GROUP = 128 << 10,
    GRAIN = 1 << 10,
    PAGE = 2 << 20,
    LINE = 64,
    CALL_BYTES = 1 << 20
};
enum { RATES = COPY + 1, LEAST_SAMPLES = 3, CHASE_STEPS = 1024 };
static const int64_t LEAST = 64 << 20, MOST = 1 << 30;
static const double SHARE_OF_RATES = 0.7, FEW_SAMPLES = 0.3; /* of the time limit */
static const double SAMPLE_MS = 0.25; /* shorter than a time slice of another program */

struct work {
    struct memory_run *r;
    struct arena *a;
    char *all, *one;        /* memory of all threads, `room` bytes each; of one thread */
    int64_t room, one_room; /* bytes of a thread in `all`; bytes of `one` */
    int64_t size;           /* the current working set */
    uint32_t *next;         /* the permutation of the chase */
    void *at;               /* the current position of the chase */
    double clock_hz[MEMORY_SIZES];
    int64_t start_ns;
    double first_ms; /* time of the first size: it also starts the threads */
};

/* One of the curves at the current size. */
struct timed_kernel {
    struct work *w;
    enum kind kind;
    int threads;
    int64_t passes; /* per call */
};

static void call(enum kind kind, const struct lab_call *c)
{
    lab_function (&memory_cpu_kernels[kind])(c);
}

static void call_on(enum kind kind, char *set, int64_t bytes, int64_t passes)
{
    uint32_t sum;
    struct lab_call c = {.out = set, .in = {set}, .n = {bytes / 4, passes}, .threads = 1};
    if (kind == READ) c.out = &sum;
    if (kind == COPY) c.out = set + bytes / 2, c.n[0] /= 2;
    call(kind, &c);
}

static uint32_t sum_of(const char *set, int64_t bytes)
{
    uint32_t sum = 0;
    call(READ, &(struct lab_call){.out = &sum, .in = {set}, .n = {bytes / 4, 1}, .threads = 1});
    return sum;
}

/* The working set of the calling thread. */
static char *set_of(const struct work *w, int threads)
{
    return threads == 1 ? w->one : w->all + omp_get_thread_num() * w->room;
}

/* Milliseconds from the start of the first thread to the end of the last. */
static double run(const struct work *w, enum kind kind, int threads, int64_t passes)
{
    int64_t start = INT64_MAX, end = 0;
#pragma omp parallel num_threads(threads) reduction(min : start) reduction(max : end)
    {
        char *set = set_of(w, threads);
#pragma omp barrier
        start = clock_ns();
        call_on(kind, set, w->size, passes);
        end = clock_ns();
    }
    return clock_ms(start, end);
}

/* Checks the results of the kernels. Leaves the words of the writing kernel in memory. */
static enum status check(const struct work *w, int threads)
{
    uint32_t all = memory_sum(0, (uint64_t)w->size / 4),
             half = memory_sum(0, (uint64_t)w->size / 8);
    int wrong = 0;
#pragma omp parallel num_threads(threads) reduction(+ : wrong)
    {
        char *set = set_of(w, threads);
        memset(set, 0xff, (size_t)w->size);
        call_on(WRITE, set, w->size, 1);
        wrong += sum_of(set, w->size) != all;
        call_on(COPY, set, w->size, 1);
        wrong += sum_of(set + w->size / 2, w->size / 2) != half;
    }
    if (!wrong) return ST_OK;
    return fail(ST_NUMERIC,
                "a kernel of lab memory computed something else at a working set of %lld bytes; "
                "this is an error of Strobe or of the memory: try another --isa",
                (long long)w->size);
}

/* Milliseconds for size number `at`: an equal share of the time that is left, but at least enough
 * for a few samples on a busy machine. */
static double budget(const struct work *w, int at)
{
    double limit = w->r->options->limit_ms, left = limit - clock_ms(w->start_ns, clock_ns());
    return fmax(left / (w->r->sizes - at), FEW_SAMPLES * limit / w->r->sizes);
}

/* --- bandwidth -------------------------------------------------------------------------------- */

static enum status sample_rate(void *user, int calls, double *ret_ms)
{
    struct timed_kernel *t = user;
    *ret_ms = run(t->w, t->kind, t->threads, t->passes * calls) / calls;
    return ST_OK;
}

static enum status measure_rates(struct work *w, int at)
{
    struct memory_run *r = w->r;
    const struct memory_options *o = r->options;
    struct timed_kernel timed[MEMORY_CURVES];
    struct contender c[MEMORY_CURVES] = {0};
    int curve[MEMORY_CURVES], n = 0;
    double budget_ms = budget(w, at);
    w->size = r->size[at];
    for (int i = 0; i < r->curves; i++) {
        int threads = r->curve[i].units;
        if (threads > 1 && w->size > w->room) continue;
        if (i % RATES == 0) TRY(check(w, threads));
        timed[n] = (struct timed_kernel){w, (enum kind)(i % RATES), threads,
                                         max_i64(1, CALL_BYTES / w->size)};
        c[n] = (struct contender){
            .sample = sample_rate,
            .user = &timed[n],
            .parts = 1,
            .budget_ms = budget_ms * SHARE_OF_RATES / r->curves,
        };
        curve[n++] = i;
    }
    struct rounds rounds = {.most = o->samples,
                            .least = (int)min_i64(LEAST_SAMPLES, o->samples),
                            .warmup = 1,
                            .sample_ms = SAMPLE_MS};
    TRY(rounds_run(&rounds, c, n));
    for (int i = 0; i < n; i++) {
        struct memory_curve *of = &r->curve[curve[i]];
        double bytes = (double)w->size * (double)timed[i].passes * of->units;
        of->rate[at] = bytes / (c[i].total.median * 1e-3);
    }
    return ST_OK;
}

/* --- latency ---------------------------------------------------------------------------------- */

static void chase(struct work *w, int64_t steps)
{
    void *to = NULL;
    call(CHASE, &(struct lab_call){.out = &to, .in = {w->at}, .n = {steps}, .threads = 1});
    w->at = to;
}

static enum status sample_chase(void *user, int calls, double *ret_ms)
{
    struct work *w = user;
    int64_t start = clock_ns();
    chase(w, (int64_t)CHASE_STEPS * calls);
    *ret_ms = clock_ms(start, clock_ns()) / calls;
    return ST_OK;
}

/* Writes the chain of addresses, follows the chain once to warm up, and checks where it ends. */
static enum status start_chase(struct work *w)
{
    enum { WARM = 1 << 18 };
    int64_t lines = w->size / LINE, steps = min_i64(lines, WARM);
    uint32_t line = 0;
    memory_cycle(w->next, lines, GROUP / LINE, 1);
    for (int64_t i = 0; i < lines; i++)
        *(void **)(w->one + i * LINE) = w->one + (int64_t)w->next[i] * LINE;
    w->at = w->one;
    chase(w, steps);
    for (int64_t i = 0; i < steps; i++) line = w->next[line];
    if (w->at == w->one + (int64_t)line * LINE && (steps < lines || line == 0)) return ST_OK;
    return fail(ST_NUMERIC,
                "the chase of lab memory went astray at a working set of %lld bytes; "
                "this is an error of Strobe or of the memory",
                (long long)w->size);
}

/* The current clock rate of the processor in Hz: the fastest of a few tries. */
static double clock_now(void)
{
    enum { TRIES = 5, ADDITIONS = 1 << 19 };
    int64_t least = INT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t x;
        int64_t start = clock_ns();
        call(CLOCK, &(struct lab_call){.out = &x, .n = {ADDITIONS}, .threads = 1});
        least = min_i64(least, clock_ns() - start);
    }
    return ADDITIONS * 1e9 / (double)max_i64(least, 1);
}

static enum status measure_latency(struct work *w, int at)
{
    struct memory_run *r = w->r;
    const struct memory_options *o = r->options;
    struct contender c = {
        .sample = sample_chase, .user = w, .parts = 1, .budget_ms = budget(w, at) / 2};
    struct rounds rounds = {.most = o->samples,
                            .least = (int)min_i64(LEAST_SAMPLES, o->samples),
                            .warmup = 1,
                            .sample_ms = SAMPLE_MS};
    w->size = r->size[at];
    TRY(start_chase(w));
    TRY(rounds_run(&rounds, &c, 1));
    w->clock_hz[at] = clock_now();
    r->ns[at] = c.total.median * 1e6 / CHASE_STEPS;
    r->clocks[at] = r->ns[at] * 1e-9 * w->clock_hz[at];
    return ST_OK;
}

/* --- all measurements ------------------------------------------------------------------------- */

static void read_caches(struct memory_run *r, struct arena *a)
{
    struct cache_fact fact[CACHES_MOST];
    r->caches = caches_read("/sys/devices/system/cpu", fact);
    for (int i = 0; i < r->caches; i++)
        r->cache[i] = (struct memory_cache){arena_printf(a, "L%d", fact[i].level), fact[i].bytes,
                                            fact[i].sharing};
}

/* Bytes of the vector registers of a core; 0: unknown. */
static int64_t register_bytes(void)
{
    enum isa isa = isa_used();
    while (isa < ISA_COUNT && !memory_cpu_kernels[READ].run[isa]) isa = (enum isa)(isa + 1);
    return isa == ISA_AVX512 ? 32 * 64
           : isa == ISA_AVX2 ? 16 * 32
           : isa == ISA_SSE2 ? 16 * 16
           : isa == ISA_NEON ? 32 * 16
                             : 0;
}

static char *take(int64_t bytes)
{
    char *p = aligned_alloc(PAGE, (size_t)round_up(bytes, PAGE));
    if (p) (void)madvise(p, (size_t)round_up(bytes, PAGE), MADV_HUGEPAGE); /* may fail */
    return p;
}

static enum status open_work(struct work *w)
{
    struct memory_run *r = w->r;
    int64_t cache = r->caches ? r->cache[r->caches - 1].bytes : 0, most = free_memory_bytes() / 4;
    char words[32];
    w->one_room = min_i64(max_i64(4 * cache, LEAST), MOST);
    if (r->options->largest) w->one_room = r->options->largest;
    w->room = min_i64(w->one_room, max_i64(MOST, w->one_room) / r->units);
    if (most > 0 && w->one_room > most) w->one_room = most;
    if (most > 0 && w->room * r->units > most) w->room = most / r->units;
    w->room = round_up(w->room, PAGE);
    w->one = take(w->one_room);
    w->all = r->units > 1 ? take(w->room * r->units) : w->one;
    w->next = calloc((size_t)(w->one_room / LINE + 1), sizeof *w->next);
    if (w->one && w->all && w->next) return ST_OK;
    return fail(ST_MEMORY,
                "%s cannot be allocated; close other programs, or choose a smaller "
                "--largest",
                str_bytes(words, (double)w->one_room + (double)(w->room * r->units)));
}

static void close_work(struct work *w)
{
    if (w->all != w->one) free(w->all);
    free(w->one);
    free(w->next);
}

static void name_curves(struct memory_run *r)
{
    static const char *const all[] = {"read, all threads", "write, all threads",
                                      "copy, all threads"},
                             *const one[] = {"read, one thread", "write, one thread",
                                             "copy, one thread"};
    for (int i = 0; i < RATES && r->units > 1; i++)
        r->curve[r->curves].name = all[i], r->curve[r->curves++].units = r->units;
    for (int i = 0; i < RATES; i++)
        r->curve[r->curves].name = one[i], r->curve[r->curves++].units = 1;
}

/* Reports the share of the time that has passed. The time that is left is estimated from the limit
 * and, after the first sizes, from the time that the sizes so far took. */
static void tell(const struct work *w, int at, double part, const char *what)
{
    const struct memory_options *o = w->r->options;
    double ms = clock_ms(w->start_ns, clock_ns()), sizes = w->r->sizes - at - part;
    double left = fmax(o->limit_ms - ms, FEW_SAMPLES * o->limit_ms * sizes / w->r->sizes);
    if (at > 1) left = (ms - w->first_ms) / (at - 1 + part) * sizes;
    if (o->each) o->each(o->user, ms / (ms + left), what);
}

static enum status measure(struct work *w)
{
    struct memory_run *r = w->r;
    w->start_ns = clock_ns();
    for (int i = 0; i < r->sizes; i++) {
        if (i == 1) w->first_ms = clock_ms(w->start_ns, clock_ns());
        tell(w, i, 0, "bandwidth");
        TRY(measure_rates(w, i));
        tell(w, i, SHARE_OF_RATES, "latency");
        TRY(measure_latency(w, i));
        r->clock_hz = stats_of(w->clock_hz, i + 1).median;
    }
    return ST_OK;
}

enum status memory_run_cpu(struct memory_run *r, struct arena *a)
{
    struct work w = {.r = r, .a = a};
    r->units = (int)threads_count();
    r->cores = (int)min_i64(r->units, threads_available());
    read_caches(r, a);
    name_curves(r);
    if (register_bytes())
        r->level[r->levels++] = (struct memory_level){.name = "registers",
                                                      .unit_bytes = register_bytes(),
                                                      .bytes = register_bytes() * r->cores,
                                                      .unit_rate = NAN,
                                                      .rate = NAN,
                                                      .write_rate = NAN,
                                                      .copy_rate = NAN,
                                                      .clock_bytes = NAN,
                                                      .ns = NAN,
                                                      .clocks = NAN,
                                                      .note = "vector registers"};
    enum status st = open_work(&w);
    if (st == ST_OK) {
        r->sizes = memory_sizes(SMALLEST, w.one_room, GRAIN, r->size);
        st = measure(&w);
    }
    close_work(&w);
    return st;
}
