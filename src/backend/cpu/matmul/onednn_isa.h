/* onednn_isa.h - which instruction set oneDNN may use; private to backend/cpu. */
#ifndef BACKEND_CPU_MATMUL_ONEDNN_ISA_H
#define BACKEND_CPU_MATMUL_ONEDNN_ISA_H

#include "base/base.h"

/* Passes isa_limited() (base/isa.h) on to the library. It chooses its instructions with its first
 * primitive: ST_UNSUPPORTED if the limit changes later. Without it: ST_OK. */
enum status onednn_limit(void);
/* What the library uses, by its own name ("avx512_core_amx"); NULL without the library or where
 * the limit is ISA_PLAIN. This call, too, fixes the library's choice. */
const char *onednn_isa(void);

#endif
