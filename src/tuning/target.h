/* target.h - the backend and the properties of the device that a program is compiled for.
 *
 * A target describes a device of this machine (backend_target), the device of a tuning file, or the
 * backend's default device. Compiling uses no other facts about a device. */
#ifndef TUNING_TARGET_H
#define TUNING_TARGET_H

#include "base/base.h"

struct backend;

struct target {
    const struct backend *backend;
    /* The rest describes a GPU; it is zero for a CPU. */
    char name[64];           /* "NVIDIA H200" */
    int arch;                /* compute capability times ten: 80, 86, 89, 90 */
    int processors;          /* multiprocessors (SMs) */
    int shared_bytes;        /* maximum shared memory per block, after opting in */
    int64_t l2_bytes, bytes; /* size of L2; size of device memory */
    bool tensor_maps;        /* the driver supports tensor maps (CUDA 12 or later) */
    int64_t library;         /* version of cuBLASLt, 130001 means 13.0.1; 0: not installed */
};

/* As the device number of backend_target: the first device, or the backend's default device if
 * there is none. */
enum { TARGET_ANY = -1 };

#endif
