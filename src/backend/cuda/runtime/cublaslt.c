#include "backend/cuda/runtime/cublaslt.h"

#include "backend/cuda/runtime/fault.h"
#include "base/log.h"

#include <pthread.h>

const struct cublaslt *cublaslt(const char **ret_why)
{
    /* The toolkit's own folder comes last: its libraries are often not on the loader's path. */
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
                                        "/usr/local/cuda/lib64/libcublasLt.so", NULL};
    static const char *const symbols[] = {CUBLASLT_LIST(LIBRARY_SYMBOL)};
    static struct cublaslt table;
    static struct library_state l;
    _Static_assert(sizeof table == sizeof symbols, "one pointer per name");
    return library_table(&l, names, true, symbols, COUNT_OF(symbols), &table, ret_why);
}

int64_t cublaslt_version(void)
{
    const struct cublaslt *t = cublaslt(NULL);
    return t ? (int64_t)t->cublasLtGetVersion() : 0;
}

/* Returns a handle of the library. Warns and returns NULL if the library is missing or cannot be
 * started. */
static cublasLtHandle_t start(void)
{
    cublasLtHandle_t handle = NULL;
    const char *why;
    const struct cublaslt *t = cublaslt(&why);
    if (t && cublaslt_check(t->cublasLtCreate(&handle), "start") != ST_OK) {
        handle = NULL;
        why = fail_message();
    }
    if (!handle)
        log_warning("matmuls run on built-in kernels without tensor cores, which are many times "
                    "slower: %s",
                    why);
    return handle;
}

/* One handle serves all ranks of a process. */
cublasLtHandle_t cublaslt_handle(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static cublasLtHandle_t handle;
    static bool tried;
    pthread_mutex_lock(&mutex);
    if (!tried) handle = start();
    tried = true;
    pthread_mutex_unlock(&mutex);
    return handle;
}

enum status cublaslt_check(cublasStatus_t s, const char *doing)
{
    if (s == CUBLAS_STATUS_SUCCESS) return ST_OK;
    const struct cublaslt *t = cublaslt(NULL);
    /* The status alone does not show whether the library or an earlier kernel failed, so errors
     * of earlier kernels are checked first. */
    CUresult before = cuda_driver(NULL)->cuCtxSynchronize();
    if (fault_is(before)) return fault_fail(before);
    return fail(s == CUBLAS_STATUS_ALLOC_FAILED ? ST_MEMORY : ST_DEVICE, "cuBLASLt cannot %s: %s",
                doing, t ? t->cublasLtGetStatusString(s) : "the library is not available");
}
