/* counters.h - what a device's hardware counters say of one kernel. */
#ifndef BACKEND_COUNTERS_H
#define BACKEND_COUNTERS_H

/* Which counters: the more there are, the more often a kernel has to be repeated. */
enum counter_set {
    COUNTERS_OF_TIME, /* the shares of a kernel's time, and bytes of DRAM */
    COUNTERS_OF_BYTES /* all bytes; shares are 0 */
};

struct kernel_counters {
    double dram_read, dram_written; /* bytes moved between DRAM and the L2 cache */
    /* Only of COUNTERS_OF_BYTES: bytes that loads and stores of warps move from and to global
     * memory, in sectors of 32 bytes, before any cache; and bytes that SMs get from L2, also by
     * copies that no warp loads (TMA). */
    double warp_read, warp_written, l2_read;
    /* Shares of the kernel's time, 0 to 1: of the tensor cores' cycles those in which they work, of
     * the SMs' cycles those with a warp, and DRAM traffic over the most that DRAM can move. */
    double tensor_active, sm_active, dram_busy;
};

#endif
