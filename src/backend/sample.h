/* sample.h - one telemetry sample of a device: utilization, clock, power, temperature. */
#ifndef BACKEND_SAMPLE_H
#define BACKEND_SAMPLE_H

#include "base/base.h"

/* Why the clock is below its maximum. */
enum throttle {
    THROTTLE_POWER,    /* the power limit is reached */
    THROTTLE_HEAT,     /* the temperature limit is reached */
    THROTTLE_BRAKE,    /* the power supply requests a reduction */
    THROTTLE_HARDWARE, /* hardware slowdown: heat, power supply or a short power peak */
    THROTTLE_SYNC,     /* the GPU follows the clock of the slowest GPU in its group */
    THROTTLE_USER,     /* a lower clock was set on purpose; not a fault of the machine */
    THROTTLE_COUNT
};

/* Unknown values are -1. */
struct device_sample {
    /* GPU: percent of the GPU's last sampling period (up to a second) in which a kernel ran. CPU:
     * the CPU time of this process since the previous sample, in percent of what its threads could
     * use. */
    double utilization;
    /* Percent of the GPU's last sampling period in which its memory was read or written. */
    double memory_utilization;
    /* From hardware counters, in percent of the maximum, since the previous sample: SMs with work,
     * use of the tensor cores, memory bandwidth. */
    double sm_active, tensor_active, dram_active;
    double clock_mhz, clock_max_mhz; /* of a GPU's SMs or a CPU's cores */
    double power_w, power_limit_w;
    double energy_j; /* counted from an arbitrary time */
    double memory_bytes;
    double temperature_c;
    int throttle;       /* 1 << enum throttle for each reason */
    int other_programs; /* the number of other programs that compute on this GPU */
    int other_pid;      /* process id of the first of these programs; 0: there is none */
};

/* A sample in which nothing is known. */
extern const struct device_sample sample_unknown;
/* "power limit", "heat" ... */
const char *throttle_name(enum throttle t);
/* True if any of these reasons slows the device down; a clock set on purpose does not count. */
bool throttle_slows(int reasons);

#endif
