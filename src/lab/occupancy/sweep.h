/* sweep.h - one kernel of a GPU that holds more and more registers, and then more and more shared
 * memory: how many warps an SM holds then, and what that is worth.
 *
 * The kernel (gpu/01_sum.cu) has one load of 16 bytes under way in each thread. An SM with w warps
 * then has 512 w bytes under way, and reads them once per latency of the memory (Little's law: J.
 * D. C. Little, "A proof for the queuing formula L = lambda W", Operations Research 9, 1961), until
 * the memory is the limit. Each launch has as many blocks as the GPU holds at once. */
#ifndef LAB_OCCUPANCY_SWEEP_H
#define LAB_OCCUPANCY_SWEEP_H

#include "lab/lab.h"
#include "measure/rounds.h"
#include "tuning/occupancy.h"

enum { SWEEP_POINTS = 20, SWEEP_THREADS = 128, SWEEP_UNDER_WAY = 16 };

struct sweep_options {
    struct device device;
    int64_t bytes; /* that a launch reads; 0: 16 times the last cache */
    int samples;   /* of each point, at most */
    bool go_on;    /* more, while the order is uncertain (rounds.h) */
    double limit_ms;
    void (*each)(void *user, double share, const char *what);
    void *user;
};

struct sweep_point {
    const char *what;              /* "registers" or "shared memory": what grows */
    int64_t dynamic_bytes;         /* shared memory of a block */
    struct kernel_resources taken; /* as the driver reports them; -1: it does not */
    struct occupancy occupancy;    /* by tuning/occupancy.h */
    struct contender time;
};

struct sweep_run {
    const struct sweep_options *options;
    int arch, processors;
    int64_t bytes;
    struct sweep_point point[SWEEP_POINTS];
    int points;
    int disagree; /* points for which the driver's number of blocks is another */
};

/* The kernel with each number of registers; ends with one without a name. */
extern const struct lab_rung sweep_kernels[];

/* ST_UNSUPPORTED: the device is no GPU, or of an unknown compute capability. ST_NUMERIC: a sum is
 * wrong. ST_INTERRUPTED: Ctrl-C ended it before every point had a sample. `a` keeps samples. */
enum status sweep_run(const struct sweep_options *o, struct sweep_run *ret, struct arena *a);

#endif
