/* kernel_name.h - readable kernel names; a library's mangled C++ names may have 400 letters. */
#ifndef BACKEND_CUDA_RUNTIME_KERNEL_NAME_H
#define BACKEND_CUDA_RUNTIME_KERNEL_NAME_H

#include "backend/trace.h"

/* Turns "_ZN8cublasLt19splitKreduce_kernelILi32E..." into "cublasLt::splitKreduce_kernel". Removes
 * the parameters and the template parameters, except the first template parameter if it is a name.
 * A name that is still too long is cut and ends in two dots. */
void kernel_name_short(const char *name, char ret[ACTIVITY_NAME]);

#endif
