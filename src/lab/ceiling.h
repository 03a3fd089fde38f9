/* ceiling.h - a copy by the device itself, which rungs and formulas are compared with. */
#ifndef LAB_CEILING_H
#define LAB_CEILING_H

#include "backend/backend.h"

struct arena;

/* The driver's copy on a GPU, in stream order; on a CPU memcpy by all threads. */
enum status ceiling_copy(const struct device *d, void *context, void *to, const void *from,
                         int64_t bytes);
/* "the driver's copy", "memcpy by 2 threads" */
const char *ceiling_copy_name(const struct device *d, struct arena *a);

#endif
