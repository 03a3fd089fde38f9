/* counters.h - what a device's hardware counters say of one kernel. */
#ifndef BACKEND_COUNTERS_H
#define BACKEND_COUNTERS_H

struct kernel_counters {
    double dram_read, dram_written; /* bytes moved between DRAM and the L2 cache */
    /* Shares of the kernel's time, 0 to 1: of the tensor cores' cycles those in which they work, of
     * the SMs' cycles those with a warp, and DRAM traffic over the most that DRAM can move. */
    double tensor_active, sm_active, dram_busy;
};

#endif
