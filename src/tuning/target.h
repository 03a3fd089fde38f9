/* target.h - what a program is compiled for: a backend and facts of a device, as a plain value.
 *
 * A target comes from a device that is there (backend->target), from a tuning file's header, or is what a
 * backend plans for where there is no device. Nothing that compiles sees more of a device than this. */
#ifndef TUNING_TARGET_H
#define TUNING_TARGET_H

#include "base/base.h"

struct backend;

struct target {
    const struct backend *backend;
    /* The rest is of a GPU. */
    char name[64];           /* "NVIDIA H200" */
    int arch;                /* compute capability times ten: 80, 86, 89, 90 */
    int processors;          /* multiprocessors (SMs) */
    int shared_bytes;        /* shared memory of a block at most, after opting in */
    int64_t l2_bytes, bytes; /* L2; all of its memory */
    bool tensor_maps;        /* its driver makes them: CUDA 12 */
    int64_t library;         /* version of cuBLASLt, 130001 of 13.0.1; 0: it is not there */
};

/* A device number for backend->target: the first device, or, where there is none, what is planned for. */
enum { TARGET_ANY = -1 };

#endif
