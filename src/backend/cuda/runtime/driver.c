#include "backend/cuda/runtime/driver.h"

#include "backend/cuda/runtime/fault.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

bool library_open(const char *const *names, const char *const *symbols, int n, void **ret_function,
                  char ret_why[LIBRARY_WHY])
{
    void *library = NULL;
    for (int i = 0; names[i] && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(ret_why, LIBRARY_WHY, "%s is not on this machine", names[0]);
        return false;
    }
    for (int i = 0; i < n; i++) {
        bool optional = symbols[i][0] == '?';
        ret_function[i] = dlsym(library, symbols[i] + optional);
        if (ret_function[i] || optional) continue;
        snprintf(ret_why, LIBRARY_WHY, "%s is too old: it has no %s; install a newer one", names[0],
                 symbols[i]);
        dlclose(library);
        return false;
    }
    return true;
}

/* Locks, because ranks of one process open their devices at the same time. */
static void open_once(struct library_state *l, const char *const *names, bool newest_by_driver,
                      const char *const *symbols, int n, void *table)
{
    enum { MOST = 96 };
    static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
    void *function[MOST];
    BUG_IF(n > MOST, "%d functions of a library", n);
    if (newest_by_driver) names = library_names(names);
    pthread_mutex_lock(&opening);
    if (!l->tried) {
        l->found = library_open(names, symbols, n, function, l->why);
        if (l->found) memcpy(table, function, (size_t)n * sizeof *function);
        atomic_store(&l->tried, true);
    }
    pthread_mutex_unlock(&opening);
}

void *library_table(struct library_state *l, const char *const *names, bool newest_by_driver,
                    const char *const *symbols, int n, void *table, const char **ret_why)
{
    if (!atomic_load(&l->tried)) open_once(l, names, newest_by_driver, symbols, n, table);
    if (ret_why) *ret_why = l->found ? NULL : l->why;
    return l->found ? table : NULL;
}

const struct cuda_driver *cuda_driver(const char **ret_why)
{
    static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};
    static const char *const symbols[] = {DRIVER_LIST(LIBRARY_SYMBOL)
                                              DRIVER_NEWER_LIST(OPTIONAL_TEXT)};
    static struct cuda_driver driver;
    static struct library_state l;
    _Static_assert(sizeof driver == sizeof symbols, "one pointer per name");
    return library_table(&l, names, false, symbols, COUNT_OF(symbols), &driver, ret_why);
}

int cuda_driver_version(void)
{
    int version = 0;
    const struct cuda_driver *d = cuda_driver(NULL);
    return d && d->cuDriverGetVersion(&version) == CUDA_SUCCESS ? version : 0;
}

const struct cuda_nvrtc *cuda_nvrtc(const char **ret_why)
{
    /* The toolkit's own folder comes last: its libraries are often not on the loader's path. */
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so", NULL};
    static const char *const symbols[] = {NVRTC_LIST(LIBRARY_SYMBOL)};
    static struct cuda_nvrtc nvrtc;
    static struct library_state l;
    _Static_assert(sizeof nvrtc == sizeof symbols, "one pointer per name");
    return library_table(&l, names, true, symbols, COUNT_OF(symbols), &nvrtc, ret_why);
}

const char *const *library_names(const char *const *names)
{
    enum { FIRST_NEEDS = 13000 };
    int version = cuda_driver_version();
    return version > 0 && version < FIRST_NEEDS ? names + 1 : names;
}

void cuda_error_text(CUresult r, char ret_text[160])
{
    const struct cuda_driver *d = cuda_driver(NULL);
    const char *text = NULL, *name = NULL;
    if (d) d->cuGetErrorString(r, &text), d->cuGetErrorName(r, &name);
    snprintf(ret_text, 160, "%s (%s)", text ? text : "unknown error", name ? name : "?");
}

enum status cuda_check(CUresult r, const char *doing)
{
    char text[160];
    if (r == CUDA_SUCCESS) return ST_OK;
    if (fault_is(r)) return fault_fail(r);
    cuda_error_text(r, text);
    return fail(r == CUDA_ERROR_OUT_OF_MEMORY ? ST_MEMORY : ST_DEVICE, "the GPU cannot %s: %s",
                doing, text);
}

enum status cuda_raise_shared(CUfunction f, int64_t bytes)
{
    static const CUfunction_attribute MOST = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    const struct cuda_driver *d = cuda_driver(NULL);
    int most = 0;
    if (bytes <= 0) return ST_OK;
    TRY(cuda_check(d->cuFuncGetAttribute(&most, MOST, f), "report a kernel's shared memory"));
    if (bytes <= most) return ST_OK;
    return cuda_check(d->cuFuncSetAttribute(f, MOST, (int)bytes), "set a kernel's shared memory");
}
