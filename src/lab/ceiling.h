/* ceiling.h - the fastest plain copy of the device, with which rungs and formulas are compared. */
#ifndef LAB_CEILING_H
#define LAB_CEILING_H

#include "backend/backend.h"

struct arena;

/* Copies `bytes` bytes: on a GPU by the driver's copy, in stream order; on a CPU by memcpy in all
 * threads. */
enum status ceiling_copy(const struct device *d, void *context, void *to, const void *from,
                         int64_t bytes);
/* "the driver's copy", "memcpy by 2 threads" */
const char *ceiling_copy_name(const struct device *d, struct arena *a);

#endif
