/* jit.h - kernel texts → functions of the GPU: compiled by NVRTC at run time, kept on disk. Texts are built in, or
 * written for one call (launch.h): these come as a `source`, which is NULL for the others.
 *
 * A module is one text with one set of constants. It is asked for while plans are made and compiled when the first
 * of its functions is wanted, all that are missing together, on all threads. Compiled modules are files in
 * ~/.cache/strobe/kernels, named by the SHA-256 of text, headers, options, architecture and compiler; each carries
 * the SHA-256 of its content, and a file that does not match is compiled again. */
#ifndef BACKEND_CUDA_RUNTIME_JIT_H
#define BACKEND_CUDA_RUNTIME_JIT_H

#include "backend/cuda/runtime/driver.h"

struct jit;

/* Compiles for compute capability `arch`; `folder` is where modules are kept, NULL: nowhere. */
struct jit *jit_open(int arch, const char *folder);
void jit_close(struct jit *j);
/* The number of that module. Text, source and options are copied. */
int jit_want(struct jit *j, const char *text, const char *source, const char *options);
/* Compiles or loads what is wanted so far. Says so where it takes long. */
enum status jit_finish(struct jit *j);
/* A function of module `number`, after jit_finish. */
enum status jit_function(struct jit *j, int number, const char *entry, CUfunction *ret);

/* One text, compiled: `arch` as "sm_90a". The image is malloc'ed, as is *ret_log (what the compiler said, registers
 * and spills included; may be NULL). A failure carries the first lines of it. */
enum status jit_compile(const char *text, const char *source, const char *options, const char *arch,
                        char **ret_image, int64_t *ret_bytes, char **ret_log);
/* The oldest and the newest architecture that NVRTC compiles for, 70, 90 …; 0: unknown. */
void jit_archs(int *ret_oldest, int *ret_newest);
/* What every text is compiled with, besides its own options; NULL after the last. */
extern const char *const jit_options[];
/* "sm_90a" of 90: with what is special to the architecture where it has that. */
void jit_arch_word(int arch, char ret_word[16]);

/* texts.c: text i of those built in, headers last (names that end in .cuh); NULL after the last. */
const char *cuda_text_name(int i);
const char *cuda_text(const char *name, int64_t *ret_bytes);

#endif
