#include "backend/cuda/runtime/cupti_library.h"

#ifdef HAVE_CUPTI
#include "backend/cuda/runtime/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(name)     #name
#define SYMBOL_TEXT(name) TEXT_OF(name),

enum { PATH = 1024 };

/* The folder that NVRTC was found in; empty: not known. */
static void folder_of_nvrtc(char ret[PATH])
{
    const struct cuda_nvrtc *n = cuda_nvrtc(NULL);
    Dl_info info;
    char *end;
    ret[0] = '\0';
    if (!n || !dladdr((void *)n->nvrtcVersion, &info) || !info.dli_fname) return;
    snprintf(ret, PATH, "%s", info.dli_fname);
    if ((end = strrchr(ret, '/'))) *end = '\0';
    if (!end) ret[0] = '\0';
}

/* By its names alone; beside NVRTC, as a toolkit has it and as wheels of Python have it; in the toolkit's own folder. */
static bool open_library(struct cupti *ret, char ret_why[LIBRARY_WHY])
{
    static const char *const plain[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so", NULL};
    static const char *const beside[] = {"", "/../extras/CUPTI/lib64", "/../../cuda_cupti/lib"};
    static const char *const own[] = {"/usr/local/cuda/lib64",
                                      "/usr/local/cuda/extras/CUPTI/lib64"};
    static const char *const symbols[] = {CUPTI_LIST(SYMBOL_TEXT)};
    enum { PLAIN = 3, MOST = PLAIN * (1 + COUNT_OF(beside) + COUNT_OF(own)) };
    static char text[MOST][PATH + 64];
    const char *names[MOST + 1], *const *served = library_names(plain);
    char nvrtc[PATH];
    int n = 0;
    folder_of_nvrtc(nvrtc);
    for (int i = 0; served[i]; i++) names[n++] = served[i];
    for (int f = 0; f < COUNT_OF(beside) + COUNT_OF(own); f++) {
        bool near = f < COUNT_OF(beside);
        for (int i = 0; served[i] && (!near || *nvrtc); i++, n++) {
            snprintf(text[n], sizeof text[n], "%s%s/%s", near ? nvrtc : "",
                     near ? beside[f] : own[f - COUNT_OF(beside)], served[i]);
            names[n] = text[n];
        }
    }
    names[n] = NULL;
    void *function[COUNT_OF(symbols)];
    _Static_assert(sizeof *ret == sizeof symbols, "one pointer for each name");
    if (!library_open(names, symbols, COUNT_OF(symbols), function, ret_why)) return false;
    memcpy(ret, function, sizeof *ret);
    return true;
}

const struct cupti *cupti(const char **ret_why)
{
    static struct cupti table;
    static char why[LIBRARY_WHY];
    static bool tried, found;
    if (!tried) found = open_library(&table, why);
    tried = true;
    if (ret_why) *ret_why = found ? NULL : why;
    return found ? &table : NULL;
}

bool cupti_there(const char **ret_why)
{
    return cupti(ret_why) != NULL;
}

void cupti_version(char ret[48])
{
    enum { OF_CUDA = 100000 }; /* 130001 of 13.0.1; 26 and less before */
    uint32_t v = 0;
    ret[0] = '\0';
    if (!cupti(NULL) || cupti(NULL)->cuptiGetVersion(&v) != CUPTI_SUCCESS) return;
    if (v >= OF_CUDA)
        snprintf(ret, 48, "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
    else
        snprintf(ret, 48, "API %u", v);
}

/* What a user can do about it. */
static const char *advice(CUptiResult r)
{
    switch ((int)r) {
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
        return ": another profiler is attached to this process";
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
        return ": this user, or this container, may not profile";
    case CUPTI_ERROR_NOT_COMPATIBLE:
    case CUPTI_ERROR_NOT_INITIALIZED:
        return ": it may be of another version than the driver";
    default:
        return "";
    }
}

enum status cupti_check(CUptiResult r, const char *doing)
{
    const char *text = NULL;
    if (r == CUPTI_SUCCESS) return ST_OK;
    cupti(NULL)->cuptiGetResultString(r, &text);
    return fail(ST_UNSUPPORTED, "CUPTI cannot %s: %s%s", doing, text ? text : "no reason is given",
                advice(r));
}

#else

bool cupti_there(const char **ret_why)
{
    if (ret_why) *ret_why = "this program was built without CUPTI's headers";
    return false;
}

void cupti_version(char ret[48])
{
    ret[0] = '\0';
}
#endif
