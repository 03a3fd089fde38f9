#include "backend/cuda/cublaslt.h"

#include "backend/cuda/driver.h"
#include "backend/cuda/fault.h"

#include <string.h>

#define TEXT_OF(name)     #name
#define SYMBOL_TEXT(name) TEXT_OF(name),

const struct cublaslt *cublaslt(const char **ret_why)
{
    /* The toolkit's own folder comes last: its libraries are often not on the loader's path. */
    static const char *const newer[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
                                        "/usr/local/cuda/lib64/libcublasLt.so", NULL};
    static const char *const older[] = {"libcublasLt.so.12", "libcublasLt.so.13", "libcublasLt.so",
                                        "/usr/local/cuda/lib64/libcublasLt.so", NULL};
    static const char *const symbols[] = {CUBLASLT_LIST(SYMBOL_TEXT)};
    static struct cublaslt table;
    static char why[LIBRARY_WHY];
    static bool tried, found;
    _Static_assert(sizeof table == sizeof symbols, "one pointer for each name");
    if (!tried) {
        void *function[COUNT_OF(symbols)];
        found = library_open(cuda_library_names(newer, older), symbols, COUNT_OF(symbols), function,
                             why);
        if (found) memcpy(&table, function, sizeof table);
        tried = true;
    }
    if (ret_why) *ret_why = found ? NULL : why;
    return found ? &table : NULL;
}

int64_t cublaslt_version(void)
{
    const struct cublaslt *t = cublaslt(NULL);
    return t ? (int64_t)t->cublasLtGetVersion() : 0;
}

cublasLtHandle_t cublaslt_handle(void)
{
    static cublasLtHandle_t handle;
    const struct cublaslt *t = cublaslt(NULL);
    if (!handle && t && t->cublasLtCreate(&handle) != CUBLAS_STATUS_SUCCESS) handle = NULL;
    return handle;
}

enum status cublaslt_check(cublasStatus_t s, const char *doing)
{
    if (s == CUBLAS_STATUS_SUCCESS) return ST_OK;
    const struct cublaslt *t = cublaslt(NULL);
    /* It does not tell its own failure from that of a kernel before. */
    CUresult before = cuda_driver(NULL)->cuCtxSynchronize();
    if (fault_is(before)) return fault_fail(before);
    return fail(ST_DEVICE, "cuBLASLt cannot %s: %s", doing,
                t ? t->cublasLtGetStatusString(s) : "it is not there");
}
