/* sweep.h - runs one GPU kernel with more and more registers, and then with more and more shared
 * memory, to show how many warps an SM can hold and how the speed depends on them.
 *
 * Each thread of the kernel (gpu/01_sum.cu) has one load of 16 bytes in flight. So an SM with w
 * warps has 512 w bytes in flight and, until the memory's bandwidth is the limit, reads that many
 * bytes in the time of one latency (Little's law: J. D. C. Little, "A proof for the queuing formula
 * L = lambda W", Operations Research 9, 1961). Each launch has as many blocks as the GPU holds at
 * once. */
#ifndef LAB_OCCUPANCY_SWEEP_H
#define LAB_OCCUPANCY_SWEEP_H

#include "lab/lab.h"
#include "measure/rounds.h"
#include "tuning/occupancy.h"

enum { SWEEP_POINTS = 20, SWEEP_THREADS = 128, SWEEP_UNDER_WAY = 16 };

struct sweep_options {
    struct device device;
    int64_t bytes; /* bytes that a launch reads; 0: 16 times the size of the last cache */
    int samples;   /* at most, of each point */
    bool go_on;    /* sample on while the order is uncertain (rounds.h) */
    double limit_ms;
    void (*each)(void *user, double share, const char *what);
    void *user;
};

struct sweep_point {
    const char *what;      /* the resource that this sweep varies: "registers", "shared memory" */
    int64_t dynamic_bytes; /* dynamic shared memory of a block */
    struct kernel_resources taken; /* as the driver reports them; -1: not reported */
    struct occupancy occupancy;    /* computed by tuning/occupancy.h */
    struct contender time;
};

struct sweep_run {
    const struct sweep_options *options;
    int arch, processors;
    int64_t bytes;
    struct sweep_point point[SWEEP_POINTS];
    int points;
    int disagree; /* points for which the driver reports another number of blocks */
};

/* The kernel, once for each number of registers; ends with a rung without a name. */
extern const struct lab_rung sweep_kernels[];

/* Runs the sweep. ST_UNSUPPORTED: the device is not a GPU, or has an unknown compute capability.
 * ST_NUMERIC: a sum is wrong. ST_INTERRUPTED: Ctrl-C came before every point had a sample. The
 * samples live in `a`. */
enum status sweep_run(const struct sweep_options *o, struct sweep_run *ret, struct arena *a);

#endif
