/* jit.h - compiles kernel sources with NVRTC at run time and caches the modules on disk. `text` is
 * the name of a source. For a built-in source `text` is its file name and `source` is NULL; for a
 * source generated for one call (launch.h) `source` is its contents.
 *
 * A module is one source with one set of constants. Planning requests modules; the first use of a
 * function compiles all modules requested so far, in parallel on all threads. Compiled modules are
 * files in ~/.cache/strobe/kernels, named by the SHA-256 of source, headers, options, architecture
 * and compiler. Each file contains the SHA-256 of its content; on a mismatch the module is compiled
 * again. */
#ifndef BACKEND_CUDA_RUNTIME_JIT_H
#define BACKEND_CUDA_RUNTIME_JIT_H

#include "backend/cuda/runtime/driver.h"

struct jit;

/* Compiles for compute capability `arch`. Without a cache folder that can be trusted, compiled
 * modules are not kept, and a message says why. Needs no device. */
struct jit *jit_open(int arch);
void jit_close(struct jit *j);
/* Requests a module and returns its number. The strings are copied. */
int jit_request(struct jit *j, const char *text, const char *source, const char *options);
/* Compiles all modules requested so far, or reads them from the cache, and loads them. Shows
 * progress if it takes long. */
enum status jit_finish(struct jit *j);
/* Like jit_finish, but does not load the modules, so it needs no device. */
void jit_make(struct jit *j);
/* Returns the compiled module `number`, after jit_make. The memory belongs to `j`. */
enum status jit_image(const struct jit *j, int number, const char **ret, int64_t *ret_bytes);
/* Host milliseconds spent so far on compiling (or reading the cache), and on loading. */
void jit_times(const struct jit *j, double *ret_compile_ms, double *ret_load_ms);
/* A function of module `number`, after jit_finish. */
enum status jit_function(struct jit *j, int number, const char *entry, CUfunction *ret);

/* Compiles one source for `arch`, such as "sm_90a". *ret_image is malloc'ed. *ret_log is the
 * malloc'ed log of the compiler, with registers and spills; a failed compilation also returns it,
 * and its beginning is part of the failure's message. ret_log may be NULL. */
enum status jit_compile(const char *text, const char *source, const char *options, const char *arch,
                        char **ret_image, int64_t *ret_bytes, char **ret_log);
/* The PTX of a source for the device of `j`. *ret and *ret_log are malloc'ed, as in jit_compile. */
enum status jit_ptx(const struct jit *j, const char *text, const char *source, const char *options,
                    char **ret, char **ret_log);
/* The oldest and newest architectures that NVRTC compiles for, such as 70 and 90; 0 if unknown. */
void jit_archs(int *ret_oldest, int *ret_newest);
/* Options that every source is compiled with; NULL after the last. */
extern const char *const jit_options[];
/* "sm_90a" for 90: with the architecture-specific features if the architecture has any. */
void jit_arch_word(int arch, char ret_word[16]);

/* texts.c: built-in file i, headers (names ending in .cuh) last; NULL after the last. */
const char *cuda_text_name(int i);
const char *cuda_text(const char *name, int64_t *ret_bytes);

#endif
