/* memory.h - the memory hierarchy of a device, measured: bandwidth and latency over the working
 * set, and the levels that the curves show.
 *
 * The working set is what one unit goes through again and again: a thread of a CPU or a
 * multiprocessor (SM) of a GPU. Where all units work, each has a part of its own of that size,
 * unless a curve says that all read the same.
 *
 * Bandwidth counts useful bytes: those read, those written, and of a copy both. Latency is the time
 * of a load whose address is the result of the load before: a chase through a random cyclic
 * permutation of cache lines (McVoy & Staelin, "lmbench: portable tools for performance analysis",
 * USENIX 1996; for GPUs Mei & Chu, "Dissecting GPU memory hierarchy through microbenchmarking",
 * IEEE TPDS 2017; the permutation by Sattolo, 1986). */
#ifndef LAB_MEMORY_MEMORY_H
#define LAB_MEMORY_MEMORY_H

#include "base/arena.h"
#include "base/caches.h"
#include "lab/lab.h"

enum { MEMORY_SIZES = 100, MEMORY_CURVES = 6, MEMORY_PLATEAUS = 8, MEMORY_LEVELS = 10 };

struct memory_options {
    struct device device;
    int64_t largest; /* working set, bytes; 0: memory_sizes decides */
    int samples;     /* of each point, at most */
    double limit_ms; /* for all measurements together */
    void (*each)(void *user, double share, const char *what);
    void *user;
};

/* Bandwidth over the working set. */
struct memory_curve {
    const char *name;          /* "read, all threads" */
    int units;                 /* threads, or multiprocessors, that worked at once */
    double rate[MEMORY_SIZES]; /* bytes/s of all of them, by size; NAN: not measured */
};

/* A flat part of a curve: points first ... last, and their median. */
struct memory_plateau {
    int first, last;
    double value;
};

/* A cache as the system or the device reports it. */
struct memory_cache {
    const char *name; /* "L2" */
    int64_t bytes;    /* of one */
    int sharing;      /* units that share it */
};

/* A row of the table. Numbers are NAN, and sizes 0, where they are unknown or make no sense. */
struct memory_level {
    const char *name;             /* "L2", "DRAM", "host link" */
    int64_t unit_bytes, bytes;    /* as reported: for each core or SM, in total */
    int64_t found;                /* the working set at which the latency leaves the level, bytes */
    double unit_rate, rate;       /* bytes/s read: by one unit, by all */
    double write_rate, copy_rate; /* bytes/s, by all */
    double clock_bytes;           /* bytes read per clock and unit */
    double ns, clocks;            /* latency */
    const char *note;             /* NULL: none */
};

struct memory_run {
    const struct memory_options *options;
    bool gpu;
    int units; /* threads, or multiprocessors */
    struct device_facts facts;
    double clock_hz; /* of a core or an SM, measured; NAN: unknown */
    int64_t size[MEMORY_SIZES];
    int sizes;
    struct memory_curve curve[MEMORY_CURVES];
    int curves;
    double ns[MEMORY_SIZES], clocks[MEMORY_SIZES]; /* latency by size; NAN: not measured */
    /* Of a GPU: bytes of its own part that an SM reads per clock, by the clocks of the kernel. */
    double clock_bytes[MEMORY_SIZES];
    struct memory_cache cache[CACHES_MOST]; /* as reported, smallest first */
    int caches;
    struct memory_plateau plateau[MEMORY_PLATEAUS]; /* of the latency */
    int plateaus;
    struct memory_level level[MEMORY_LEVELS]; /* from registers to the host link */
    int levels;
    struct memory_level host_link; /* of a GPU; without a name: not measured */
    double l2_copy_rate; /* of a GPU: bytes/s read and written by a copy within L2; NAN: unknown */
};

/* Measures the device. ST_INTERRUPTED if Ctrl-C ended it before. ST_NUMERIC: a kernel computed
 * something else than it should. */
enum status memory_measure(const struct memory_options *o, struct memory_run *ret, struct arena *a);

/* --- parts of it, for tests ------------------------------------------------------------------- */

/* About four sizes for each octave, from `smallest` to `largest`, each a multiple of `grain` (a
 * power of two) and at least its power of two / 16; returns their number. */
int memory_sizes(int64_t smallest, int64_t largest, int64_t grain, int64_t ret[MEMORY_SIZES]);

/* steps.c. The flat parts of a curve that rises from level to level, such as latency or time per
 * byte, over n ascending sizes; NAN is left out. A part spans an octave or more, its values differ
 * by little from their median, and neighbouring parts differ by more than noise. A constant curve
 * has one part, and one that rises steadily has none or one. */
int memory_plateaus(const int64_t *size, const double *cost, int n,
                    struct memory_plateau ret[MEMORY_PLATEAUS]);
/* The plateau that ends at each cache, by the logarithm of the sizes: -1 if none ends near it. The
 * last plateau ends nowhere. */
void memory_match(const int64_t *size, const struct memory_plateau *p, int plateaus,
                  const struct memory_cache *cache, int caches, int *ret);

/* A random permutation with one cycle (Sattolo): element i leads to ret[i]. It goes through all of
 * a group of `group` neighbouring elements before it enters the next, as Google's multichase does,
 * so that a TLB need not hold more than the pages of a group; `group` >= n: one group. */
void memory_cycle(uint32_t *ret, int64_t n, int64_t group, uint32_t seed);

/* The word i of what writing kernels write, and the sum of words first ... end - 1. */
static inline uint32_t memory_word(uint64_t i)
{
    return (uint32_t)i * 2654435761u;
}
uint32_t memory_sum(uint64_t first, uint64_t end);

/* memory_cpu.c and memory_gpu.c: measure the curves and the latency, and set the levels that no
 * working set shows: registers, shared memory, the host link. */
enum status memory_run_cpu(struct memory_run *r, struct arena *a);
enum status memory_run_gpu(struct memory_run *r, struct arena *a);
/* Measures r->host_link with at most `most` bytes of device memory, which it overwrites. */
enum status memory_run_link(struct memory_run *r, void *context, void *device, int64_t most);
/* A level of which no rate is known yet. */
struct memory_level memory_level_unknown(const char *name);
/* The kernels; both end with one without a name. */
extern const struct lab_rung memory_cpu_kernels[], memory_gpu_kernels[];

#endif
