/* signature.h - reads the parameters of a kernel from its source and matches a launch's arguments
 * with them by name.
 *
 * The host names each argument; the order and the types of the parameters come from the source.
 * Only a small part of C++ is understood; anything else is a failure that names source, entry and
 * parameter:
 *
 *     KERNEL(THREADS) entry(const float *x, int rows, const __grid_constant__ tensor_map map, ...)
 *     #define MACRO(entry, ...) ... KERNEL(THREADS) entry(...)      and then      MACRO(scale, ...)
 *
 * A parameter list may contain `#if NAME` or `#if !NAME`, `#else` and `#endif`, where NAME is a
 * number from the launch's options or from a #define of the source. A parameter is a pointer, an
 * int, u32, i64, float or tensor map. */
#ifndef BACKEND_CUDA_RUNTIME_SIGNATURE_H
#define BACKEND_CUDA_RUNTIME_SIGNATURE_H

#include "backend/cuda/runtime/launch.h"

enum parameter_kind {
    PARAMETER_POINTER,
    PARAMETER_CONST_POINTER,
    PARAMETER_I32,
    PARAMETER_U32,
    PARAMETER_I64,
    PARAMETER_F32,
    PARAMETER_TENSOR_MAP
};
struct parameter {
    enum parameter_kind kind;
    char name[ARG_NAME];
};
struct signature {
    int parameters;
    struct parameter parameter[LAUNCH_ARGS];
};

/* Reads the signature of a launch's entry from `source`, or from a file that it includes. */
enum status signature_read(const struct cuda_launch *k, const char *source, struct signature *ret);
/* Sorts the arguments of a launch into the order of the parameters. Fails if a parameter has no
 * argument or two, or if an argument has no parameter or the wrong type. Inputs need const. */
enum status signature_match(const struct signature *s, struct cuda_launch *k);

#endif
