/* onednn.h - matmuls by oneDNN. */
#ifndef BACKEND_CPU_MATMUL_ONEDNN_H
#define BACKEND_CPU_MATMUL_ONEDNN_H

#include "backend/kernel.h"

/* Ends with run == NULL; without the library it has no rows. */
extern const struct kernel onednn_rows[];

#endif
