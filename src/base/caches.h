/* caches.h - the data caches of a processor, as the operating system reports them. */
#ifndef BASE_CACHES_H
#define BASE_CACHES_H

#include "base/base.h"

enum { CACHES_MOST = 6 };

struct cache_fact {
    int level;     /* 1: L1 */
    int64_t bytes; /* size of one such cache */
    int sharing;   /* logical processors that share it; at least 1 */
};

/* The data and unified caches of the first processor, smallest level first; returns their number,
 * at most CACHES_MOST, or 0 if the system reports none, as in some virtual machines. `root` is
 * /sys/devices/system/cpu. In a virtual machine, the host decides which sizes are reported. */
int caches_read(const char *root, struct cache_fact ret[CACHES_MOST]);
/* Bytes of all last-level caches of this machine together; 0: unknown. */
int64_t caches_last(void);

#endif
