/* sample.h - what a device says of itself at one moment: how busy, how fast and how warm it is, and what slows it. */
#ifndef BACKEND_SAMPLE_H
#define BACKEND_SAMPLE_H

#include "base/base.h"

/* Why a clock is lower than it might be. */
enum throttle {
    THROTTLE_POWER,     /* the limit of its power is reached */
    THROTTLE_HEAT,      /* it is too warm */
    THROTTLE_BRAKE,     /* the power supply asks for less */
    THROTTLE_HARDWARE,  /* the hardware slows itself: heat, power supply or a short peak of power */
    THROTTLE_NEIGHBOUR, /* it keeps to the clock of the slowest in its group */
    THROTTLE_SET,       /* somebody chose a lower clock: no fault of the machine's */
    THROTTLE_COUNT
};

/* What is not known is -1. */
struct device_sample {
    double
        utilization; /* percent of the last moments (a GPU's own choice, up to a second) in which it was at work */
    double clock_mhz, clock_max_mhz; /* of multiprocessors; of a CPU's cores */
    double power_w, power_limit_w;
    double energy_j; /* since some moment in the past */
    double memory_bytes;
    double temperature_c;
    int throttle; /* 1 << enum throttle for each reason */
};

/* Nothing is known. */
extern const struct device_sample sample_unknown;
/* "power limit", "heat" ... */
const char *throttle_name(enum throttle t);
/* True if the device would be faster but for these reasons; a clock that was chosen is none. */
bool throttle_slows(int reasons);

#endif
