#include "backend/cuda/runtime/cupti_library.h"

#ifdef HAVE_CUPTI
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { PATH = 1024 };

/* The folder in which NVRTC was found; empty: unknown. */
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

/* Tries the plain names, then folders near NVRTC (in a toolkit or in Python wheels), then the
 * toolkit's default folder. */
static bool open_library(struct cupti *ret, char ret_why[LIBRARY_WHY])
{
    static const char *const plain[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so", NULL};
    static const char *const relative[] = {"", "/../extras/CUPTI/lib64", "/../../cuda_cupti/lib"};
    static const char *const absolute[] = {"/usr/local/cuda/lib64",
                                           "/usr/local/cuda/extras/CUPTI/lib64"};
    static const char *const symbols[] = {CUPTI_LIST(LIBRARY_SYMBOL)
                                              CUPTI_RANGE_LIST(OPTIONAL_TEXT)};
    enum { PLAIN = 3, MOST = PLAIN * (1 + COUNT_OF(relative) + COUNT_OF(absolute)) };
    static char text[MOST][PATH + 64];
    const char *names[MOST + 1], *const *served = library_names(plain);
    char nvrtc[PATH];
    int n = 0;
    folder_of_nvrtc(nvrtc);
    for (int i = 0; served[i]; i++) names[n++] = served[i];
    for (int f = 0; f < COUNT_OF(relative) + COUNT_OF(absolute); f++) {
        bool near = f < COUNT_OF(relative);
        for (int i = 0; served[i] && (!near || *nvrtc); i++, n++) {
            snprintf(text[n], sizeof text[n], "%s%s/%s", near ? nvrtc : "",
                     near ? relative[f] : absolute[f - COUNT_OF(relative)], served[i]);
            names[n] = text[n];
        }
    }
    names[n] = NULL;
    void *function[COUNT_OF(symbols)];
    _Static_assert(sizeof *ret == sizeof symbols, "one pointer per name");
    if (!library_open(names, symbols, COUNT_OF(symbols), function, ret_why)) return false;
    memcpy(ret, function, sizeof *ret);
    return true;
}

static struct {
    struct cupti table;
    char why[LIBRARY_WHY];
    bool found;
} library;

static void open_once(void)
{
    library.found = open_library(&library.table, library.why);
}

const struct cupti *cupti(const char **ret_why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* for ranks that are threads */
    pthread_once(&once, open_once);
    if (ret_why) *ret_why = library.found ? NULL : library.why;
    return library.found ? &library.table : NULL;
}

bool cupti_available(const char **ret_why)
{
    return cupti(ret_why) != NULL;
}

void cupti_version(char ret[48])
{
    enum { OF_CUDA = 100000 }; /* CUDA 13.0.1 reports 130001; older versions report 26 or less */
    uint32_t v = 0;
    ret[0] = '\0';
    if (!cupti(NULL) || cupti(NULL)->cuptiGetVersion(&v) != CUPTI_SUCCESS) return;
    if (v >= OF_CUDA)
        snprintf(ret, 48, "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
    else
        snprintf(ret, 48, "API %u", v);
}

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
        return ": its version may not match the driver";
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

bool cupti_available(const char **ret_why)
{
    if (ret_why) *ret_why = "this program was built without CUPTI's headers";
    return false;
}

void cupti_version(char ret[48])
{
    ret[0] = '\0';
}
#endif
