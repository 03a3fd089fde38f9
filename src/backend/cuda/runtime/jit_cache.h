/* jit_cache.h - compiled modules as files. A module that is missing, cut or changed is just not there. */
#ifndef BACKEND_CUDA_RUNTIME_JIT_CACHE_H
#define BACKEND_CUDA_RUNTIME_JIT_CACHE_H

#include "base/base.h"

/* Where a module is kept: named by what it is made of; `source` as jit.h says. False where the path is too long or there is no compiler. */
bool jit_cache_path(const char *folder, const char *text, const char *source, const char *options,
                    const char *arch, char ret_path[1024]);
/* malloc'ed. */
bool jit_cache_read(const char *path, char **ret_image, int64_t *ret_bytes);
/* What cannot be written is compiled again next time. */
void jit_cache_write(const char *path, const char *image, int64_t bytes);

#endif
