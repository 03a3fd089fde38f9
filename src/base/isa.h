/* isa.h - which instructions this processor has, of those that matter to training. */
#ifndef BASE_ISA_H
#define BASE_ISA_H

#include "base/arena.h"

/* "avx2 fma avx512f avx512_bf16 amx_bf16", in the words of /proc/cpuinfo; may be empty. */
const char *isa_names(struct arena *a);
/* The same out of the text of a /proc/cpuinfo. */
const char *isa_names_of(const char *cpuinfo, struct arena *a);

#endif
