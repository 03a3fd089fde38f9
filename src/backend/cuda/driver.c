#include "backend/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { WHY = 256 };

void *library_open(const char *const *names, const char *const *symbols, int n, void **ret_function,
                   const char **ret_why)
{
    static _Thread_local char why[WHY];
    void *library = NULL;
    for (int i = 0; names[i] && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    *ret_why = why;
    if (!library) {
        snprintf(why, sizeof why, "%s is not on this machine", names[0]);
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        ret_function[i] = dlsym(library, symbols[i]);
        if (ret_function[i]) continue;
        snprintf(why, sizeof why, "%s is too old: it has no %s", names[0], symbols[i]);
        dlclose(library);
        return NULL;
    }
    return library;
}

#define TEXT_OF(name)     #name
#define SYMBOL_TEXT(name) TEXT_OF(name),

const struct cuda_driver *cuda_driver(const char **ret_why)
{
    static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};
    static const char *const symbols[] = {DRIVER_LIST(SYMBOL_TEXT)};
    static struct cuda_driver driver;
    static const char *why;
    static bool tried, found;
    _Static_assert(sizeof driver == sizeof symbols, "one pointer for each name");
    if (!tried) {
        void *function[COUNT_OF(symbols)];
        found = library_open(names, symbols, COUNT_OF(symbols), function, &why) != NULL;
        if (found) memcpy(&driver, function, sizeof driver);
        tried = true;
    }
    if (ret_why) *ret_why = found ? NULL : why;
    return found ? &driver : NULL;
}

const struct cuda_nvrtc *cuda_nvrtc(const char **ret_why)
{
    /* The toolkit's own folder comes last: its libraries are often not on the loader's path. */
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so", NULL};
    static const char *const symbols[] = {NVRTC_LIST(SYMBOL_TEXT)};
    static struct cuda_nvrtc nvrtc;
    static const char *why;
    static bool tried, found;
    _Static_assert(sizeof nvrtc == sizeof symbols, "one pointer for each name");
    if (!tried) {
        void *function[COUNT_OF(symbols)];
        found =
            library_open(library_names(names), symbols, COUNT_OF(symbols), function, &why) != NULL;
        if (found) memcpy(&nvrtc, function, sizeof nvrtc);
        tried = true;
    }
    if (ret_why) *ret_why = found ? NULL : why;
    return found ? &nvrtc : NULL;
}

const char *const *library_names(const char *const *names)
{
    enum { OF_FIRST = 13000 };
    const struct cuda_driver *d = cuda_driver(NULL);
    int version = 0;
    bool older = d && d->cuDriverGetVersion(&version) == CUDA_SUCCESS && version < OF_FIRST;
    return older ? names + 1 : names;
}

enum status cuda_check(CUresult r, const char *doing)
{
    if (r == CUDA_SUCCESS) return ST_OK;
    const struct cuda_driver *d = cuda_driver(NULL);
    const char *text = NULL, *name = NULL;
    if (d) d->cuGetErrorString(r, &text), d->cuGetErrorName(r, &name);
    return fail(ST_DEVICE, "the GPU cannot %s: %s (%s)", doing, text ? text : "unknown error",
                name ? name : "?");
}
