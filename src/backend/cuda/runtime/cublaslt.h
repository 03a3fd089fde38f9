/* cublaslt.h - the library of matrix products, opened at run time: without it our own kernels multiply.
 *
 * One table of function pointers, as driver.h has it. Names are the toolkit's. */
#ifndef BACKEND_CUDA_RUNTIME_CUBLASLT_H
#define BACKEND_CUDA_RUNTIME_CUBLASLT_H

#include "base/base.h"

#include <cublasLt.h>

/* clang-format off */
#define CUBLASLT_LIST(F)                                                                            \
    F(cublasLtCreate) F(cublasLtGetVersion) F(cublasLtGetStatusString) F(cublasLtMatmul)            \
    F(cublasLtMatmulDescCreate) F(cublasLtMatmulDescDestroy) F(cublasLtMatmulDescSetAttribute)      \
    F(cublasLtMatrixLayoutCreate) F(cublasLtMatrixLayoutDestroy)                                    \
    F(cublasLtMatrixLayoutSetAttribute) F(cublasLtMatmulPreferenceCreate)                           \
    F(cublasLtMatmulPreferenceDestroy) F(cublasLtMatmulPreferenceSetAttribute)                      \
    F(cublasLtMatmulAlgoGetHeuristic) F(cublasLtMatmulAlgoCheck)
/* clang-format on */

#define CUBLASLT_MEMBER(name) __typeof__(name) *name;
struct cublaslt {
    CUBLASLT_LIST(CUBLASLT_MEMBER)
};
#undef CUBLASLT_MEMBER

/* NULL where the library is missing or too old; *ret_why (which may be NULL) then says what was looked for. The
 * first call opens it; it stays open. */
const struct cublaslt *cublaslt(const char **ret_why);
/* 130001 of 13.0.1; 0 without the library. */
int64_t cublaslt_version(void);
/* Its handle on the GPU that is current, made when first asked for and kept. NULL without library or GPU. */
cublasLtHandle_t cublaslt_handle(void);
/* "cuBLASLt cannot multiply: out of memory" */
enum status cublaslt_check(cublasStatus_t s, const char *doing);

#endif
