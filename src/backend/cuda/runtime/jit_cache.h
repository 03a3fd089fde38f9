/* jit_cache.h - compiled modules as files. A truncated or changed file, and one that another user
 * owns or can write (base/trust.h), counts as missing. */
#ifndef BACKEND_CUDA_RUNTIME_JIT_CACHE_H
#define BACKEND_CUDA_RUNTIME_JIT_CACHE_H

#include "base/base.h"

/* The path of a module: the last part of the text's name and a hash of its inputs. False: too long,
 * or no compiler. */
bool jit_cache_path(const char *folder, const char *text, const char *source, const char *options,
                    const char *arch, char ret_path[1024]);
/* The image is malloc'ed. False if there is no valid file. */
bool jit_cache_read(const char *path, char **ret_image, int64_t *ret_bytes);
/* A failure is ignored: the module is compiled again next time. */
void jit_cache_write(const char *path, const char *image, int64_t bytes);

#endif
