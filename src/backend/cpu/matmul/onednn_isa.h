/* onednn_isa.h - which instruction set oneDNN may use; private to backend/cpu. */
#ifndef BACKEND_CPU_MATMUL_ONEDNN_ISA_H
#define BACKEND_CPU_MATMUL_ONEDNN_ISA_H

#include "base/base.h"

/* Passes isa_limited() (base/isa.h) on to the library. It chooses once and for all when its first primitive is
 * made: ST_UNSUPPORTED if the limit is another one by then. Without the library there is nothing to do. */
enum status onednn_limit(void);
/* What the library uses, in its own words ("avx512_core_amx"); NULL without it or where the limit is ISA_PLAIN.
 * Asking is its choice, too. */
const char *onednn_isa(void);

#endif
