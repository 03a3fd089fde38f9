/* jit_cache.h - compiled modules as files. A file counts as missing if it is truncated or changed,
 * or if another user owns it or can write it (base/trust.h). */
#ifndef BACKEND_CUDA_RUNTIME_JIT_CACHE_H
#define BACKEND_CUDA_RUNTIME_JIT_CACHE_H

#include "base/base.h"

/* The path of a module: the last part of `text`, and a hash of all inputs of the compilation.
 * False: the path is too long, or there is no compiler. */
bool jit_cache_path(const char *folder, const char *text, const char *source, const char *options,
                    const char *arch, char ret_path[1024]);
/* Reads the image from the file into malloc'ed memory. Returns false if there is no valid file. */
bool jit_cache_read(const char *path, char **ret_image, int64_t *ret_bytes);
/* Writes the image to the file. A failure is ignored: the module is compiled again next time. */
void jit_cache_write(const char *path, const char *image, int64_t bytes);

#endif
