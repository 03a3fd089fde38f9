/* kernel_name.h - the name of a kernel in a form for people. Ours are words of C; a library's may be mangled C++ of 400 letters. */
#ifndef BACKEND_CUDA_RUNTIME_KERNEL_NAME_H
#define BACKEND_CUDA_RUNTIME_KERNEL_NAME_H

#include "backend/trace.h"

/* "_ZN8cublasLt19splitKreduce_kernelILi32E...": cublasLt::splitKreduce_kernel. Parameters go, those of templates too, but for a
 * first one that is a name; what is longer still ends in two dots. */
void kernel_name_short(const char *name, char ret[ACTIVITY_NAME]);

#endif
