/* cublaslt.h - cuBLASLt, the matmul library, opened at run time. Without it our own kernels are
 * used.
 *
 * The functions are in one table, as in driver.h, with the toolkit's names. */
#ifndef BACKEND_CUDA_RUNTIME_CUBLASLT_H
#define BACKEND_CUDA_RUNTIME_CUBLASLT_H

#include "backend/cuda/runtime/driver.h"

#include <cublasLt.h>

/* clang-format off */
#define CUBLASLT_LIST(F)                                                                          \
    F(cublasLtCreate) F(cublasLtGetVersion) F(cublasLtGetStatusString) F(cublasLtMatmul)          \
    F(cublasLtMatmulDescCreate) F(cublasLtMatmulDescDestroy) F(cublasLtMatmulDescSetAttribute)    \
    F(cublasLtMatrixLayoutCreate) F(cublasLtMatrixLayoutDestroy)                                  \
    F(cublasLtMatrixLayoutSetAttribute) F(cublasLtMatmulPreferenceCreate)                         \
    F(cublasLtMatmulPreferenceDestroy) F(cublasLtMatmulPreferenceSetAttribute)                    \
    F(cublasLtMatmulAlgoGetHeuristic) F(cublasLtMatmulAlgoCheck)
/* clang-format on */

struct cublaslt {
    CUBLASLT_LIST(LIBRARY_MEMBER)
};

/* NULL if the library is missing or too old; *ret_why (which may be NULL) then states what was
 * searched for. The first call opens the library, which stays open. */
const struct cublaslt *cublaslt(const char **ret_why);
/* 130001 for 13.0.1; 0 without the library. */
int64_t cublaslt_version(void);
/* The handle, which the first call creates on the current GPU. NULL without library or GPU. */
cublasLtHandle_t cublaslt_handle(void);
/* Fails with "cuBLASLt cannot multiply: out of memory". */
enum status cublaslt_check(cublasStatus_t s, const char *doing);

#endif
