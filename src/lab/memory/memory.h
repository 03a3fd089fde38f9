/* memory.h - measures the memory hierarchy of a device: bandwidth and latency as functions of the
 * working set, and the levels that these curves show.
 *
 * The working set is the memory that one unit (a CPU thread or a GPU multiprocessor, SM) accesses
 * again and again. If all units work, each unit has its own working set of that size, unless the
 * curve's name says that all units read the same set.
 *
 * Bandwidth counts useful bytes: bytes read, bytes written, or both for a copy. Latency is the time
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
    int64_t largest; /* largest working set, bytes; 0: chosen from the size of the caches */
    int samples;     /* at most, of each point */
    double limit_ms; /* for all measurements together */
    void (*each)(void *user, double share, const char *what);
    void *user;
};

/* Bandwidth as a function of the working set. */
struct memory_curve {
    const char *name;          /* "read, all threads" */
    int units;                 /* threads, or multiprocessors, that worked at once */
    double rate[MEMORY_SIZES]; /* bytes/s of all units together, by size; NAN: not measured */
};

/* A flat part of a curve: points first ... last, and their median. */
struct memory_plateau {
    int first, last;
    double value;
};

/* A cache as the system or the device reports it. */
struct memory_cache {
    const char *name; /* "L2" */
    int64_t bytes;    /* size of one such cache */
    int sharing;      /* units that share it */
};

/* A level of the hierarchy. Unknown or meaningless numbers are NAN; such sizes are 0. */
struct memory_level {
    const char *name;             /* "L2", "DRAM", "host link" */
    int64_t unit_bytes, bytes;    /* reported size: of each core or SM; in total */
    int64_t found;                /* the largest working set with this level's latency, bytes */
    double unit_rate, rate;       /* bytes/s read: by one unit, by all */
    double write_rate, copy_rate; /* bytes/s, by all units */
    double clock_bytes;           /* bytes read per clock and unit */
    double ns, clocks;            /* latency */
    const char *note;             /* NULL: none */
};

struct memory_run {
    const struct memory_options *options;
    bool gpu;
    int units; /* threads, or multiprocessors */
    int cores; /* cores with caches of their own: `units`, but at most the cores of the machine */
    struct device_facts facts;
    double clock_hz; /* of a core or an SM, measured; NAN: unknown */
    int64_t size[MEMORY_SIZES];
    int sizes;
    bool stopped; /* by Ctrl-C: the larger sizes, and on a GPU maybe the latency, are missing */
    struct memory_curve curve[MEMORY_CURVES];
    int curves;
    double ns[MEMORY_SIZES], clocks[MEMORY_SIZES]; /* latency by size; NAN: not measured */
    /* GPU only: bytes of its own set that an SM reads per clock, timed inside the kernel. */
    double clock_bytes[MEMORY_SIZES];
    struct memory_cache cache[CACHES_MOST]; /* as reported, smallest first */
    int caches;
    struct memory_plateau plateau[MEMORY_PLATEAUS]; /* of the latency */
    int plateaus;
    struct memory_level level[MEMORY_LEVELS]; /* from registers to the host link */
    int levels;
    struct memory_level host_link; /* GPU only; without a name: not measured */
    double l2_copy_rate; /* GPU only: bytes/s read and written by a copy within L2; NAN: unknown */
};

/* Measures the device. ST_INTERRUPTED: Ctrl-C came before any size was measured. ST_NUMERIC: a
 * result is wrong. */
enum status memory_measure(const struct memory_options *o, struct memory_run *ret, struct arena *a);

/* --- functions that tests call ---------------------------------------------------------------- */

/* Writes about four sizes for each octave from `smallest` to `largest` and returns their number.
 * Each size is a multiple of `grain` (a power of two) and of 1/16 of the largest power of two that
 * is not above the size. */
int memory_sizes(int64_t smallest, int64_t largest, int64_t grain, int64_t ret[MEMORY_SIZES]);

/* Finds the flat parts of a curve that rises from level to level, such as latency, over n ascending
 * sizes; returns their number. NANs are ignored. A part spans an octave or more, its values differ
 * little from their median, and neighboring parts differ by more than noise. A constant curve has
 * one part; a curve that rises steadily has none or one. In steps.c. */
int memory_plateaus(const int64_t *size, const double *cost, int n,
                    struct memory_plateau ret[MEMORY_PLATEAUS]);
/* ret[i] is the index of the plateau whose end is nearest to the size of cache i (by logarithms),
 * or -1 if no end is near. The last plateau has no end and is not used. */
void memory_match(const int64_t *size, const struct memory_plateau *p, int plateaus,
                  const struct memory_cache *cache, int caches, int *ret);

/* Sets the levels from the curves, the latency and r->cache. Called by memory_measure. */
void memory_set_levels(struct memory_run *r, struct arena *a);

/* A random permutation with one cycle (Sattolo): element i leads to ret[i]. The cycle visits all
 * elements of a group of `group` neighboring elements before it enters the next group, as in
 * Google's multichase, so that a TLB needs to hold only the pages of one group. If `group` >= n,
 * there is only one group. */
void memory_cycle(uint32_t *ret, int64_t n, int64_t group, uint32_t seed);

/* memory_word: the value that writing kernels write to word i. memory_sum: the sum of words first
 * ... end - 1. */
static inline uint32_t memory_word(uint64_t i)
{
    return (uint32_t)i * 2654435761u;
}
uint32_t memory_sum(uint64_t first, uint64_t end);

/* Measure the curves and the latency, and set the levels that the curves cannot show: registers,
 * shared memory, the host link. */
enum status memory_run_cpu(struct memory_run *r, struct arena *a);
enum status memory_run_gpu(struct memory_run *r, struct arena *a);
/* Measures r->host_link; overwrites at most `most` bytes of device memory at `device`. */
enum status memory_run_link(struct memory_run *r, void *context, void *device, int64_t most);
/* A level whose rates are all unknown. */
struct memory_level memory_level_unknown(const char *name);
/* The kernels; both arrays end with a rung without a name. */
extern const struct lab_rung memory_cpu_kernels[], memory_gpu_kernels[];

#endif
