/* Preloaded: hides installed libraries whose paths contain one of the words of EMU_WITHOUT. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef void *open_fn(const char *, int);

void *dlopen(const char *path, int flags)
{
    open_fn *real = (open_fn *)dlsym(RTLD_NEXT, "dlopen");
    const char *names = getenv("EMU_WITHOUT");
    char copy[256] = "", *rest = copy, *word;
    if (path && names) strncpy(copy, names, sizeof copy - 1);
    while ((word = strtok_r(rest, " ", &rest)))
        if (strstr(path, word)) return NULL;
    return real(path, flags);
}
