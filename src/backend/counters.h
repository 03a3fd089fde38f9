/* counters.h - the values of a device's hardware counters for one kernel. */
#ifndef BACKEND_COUNTERS_H
#define BACKEND_COUNTERS_H

#include "base/counter_shares.h"

/* Which counters to read. Reading more counters takes more repetitions of each kernel. */
enum counter_set {
    COUNTERS_OF_TIME, /* the shares and the bytes of DRAM */
    COUNTERS_OF_BYTES /* all bytes; the shares are 0 */
};

struct kernel_counters {
    double dram_read, dram_written; /* bytes moved between DRAM and the L2 cache */
    /* Set by COUNTERS_OF_BYTES only. warp_*: bytes of global memory that warps load and store,
     * counted in sectors of 32 bytes before any cache. l2_read: bytes that SMs read from L2,
     * including TMA copies, which are not loads of a warp. */
    double warp_read, warp_written, l2_read;
    COUNTER_SHARES(COUNTER_SHARE_MEMBER, double)
};

#endif
