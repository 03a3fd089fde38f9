/* cubin.h - a kernel's registers and static shared memory, read from its cubin (an ELF file). */
#ifndef BACKEND_CUDA_RUNTIME_CUBIN_H
#define BACKEND_CUDA_RUNTIME_CUBIN_H

#include "base/base.h"

struct cubin_kernel {
    int registers;        /* of a thread */
    int64_t static_bytes; /* static shared memory of a block, without what the system reserves */
};

/* Finds what the image states about kernel `entry`. Returns false if the image is no cubin or does
 * not describe such a kernel. */
bool cubin_kernel(const char *image, int64_t bytes, const char *entry, struct cubin_kernel *ret);

#endif
