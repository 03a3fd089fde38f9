/* onednn_isa.h - which instruction set oneDNN may use; private to backend/cpu. */
#ifndef BACKEND_CPU_MATMUL_ONEDNN_ISA_H
#define BACKEND_CPU_MATMUL_ONEDNN_ISA_H

#include "base/base.h"

/* Passes isa_limited() (base/isa.h) on to oneDNN. oneDNN fixes its choice when it creates its first
 * primitive: ST_UNSUPPORTED if the limit changes later. In a build without oneDNN: ST_OK. */
enum status onednn_limit(void);
/* The instruction set that oneDNN uses: on x86 oneDNN's name for it ("avx512_core_amx"), on Arm
 * "aarch64". NULL in a build without oneDNN or if the limit is ISA_PLAIN. On x86, this call also
 * fixes oneDNN's choice. */
const char *onednn_isa(void);

#endif
