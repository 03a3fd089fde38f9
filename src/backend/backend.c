#include "backend/backend.h"

#include <string.h>

/* THE list of backends. Each is defined in its own folder, whose headers are not included here. */
extern const struct backend cpu_backend, cuda_backend, null_backend;
static const struct backend *const backends[] = {&cpu_backend,
#ifdef HAVE_CUDA
                                                 &cuda_backend,
#endif
                                                 &null_backend};

const struct backend *backend_find(const char *name)
{
    for (int i = 0; i < COUNT_OF(backends); i++)
        if (strcmp(backends[i]->name, name) == 0) return backends[i];
    return NULL;
}

enum status backend_target(const struct backend *b, int device, struct target *ret)
{
    *ret = (struct target){.backend = b};
    return b->devices.target ? b->devices.target(device, ret) : ST_OK;
}

bool backend_library_at(const struct backend *b, int i, struct device_library *ret)
{
    return b->devices.library && b->devices.library(i, ret);
}

bool backend_library(const struct backend *b, const char *name, struct device_library *ret)
{
    for (int i = 0; backend_library_at(b, i, ret); i++)
        if (strcmp(ret->name, name) == 0) return true;
    return false;
}

const struct backend *backend_at(int i)
{
    return i >= 0 && i < COUNT_OF(backends) ? backends[i] : NULL;
}
