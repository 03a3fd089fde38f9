/* heap.h - host memory allocation that never returns NULL.
 *
 * If malloc fails, the reserve is freed and the request repeated. Without a reserve, or if the
 * second request fails too, one sentence goes to stderr and the process exits with 1 at once,
 * without a core dump or exit handlers. Complete files stay complete, because every file is written
 * under a temporary name first.
 *
 * A training keeps a reserve. heap_low() is true once the reserve was freed. The training loop
 * checks it after each step, never within an allocation, saves a checkpoint and returns ST_MEMORY.
 * So if a training lacks less memory than the reserve, it finishes the step and saves a checkpoint;
 * if it lacks more, only the earlier checkpoints remain. A process that the kernel kills later,
 * when it touches memory beyond a limit, prints nothing: engine_open checks for this beforehand
 * (engine/fit.h).
 *
 * Large blocks (tensors) are allocated elsewhere, by code that returns ST_MEMORY, so that the
 * message can suggest another batch_size. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include "base/checked.h"

/* The caller calls free(). The contents of heap_alloc are undefined, those of heap_zeroed zero. */
void *heap_alloc(int64_t bytes);
void *heap_zeroed(int64_t bytes);
/* `alignment` is a power of two; `bytes` is rounded up to a multiple of it. */
void *heap_aligned(int64_t alignment, int64_t bytes);
/* As realloc; `block` may be NULL. */
void *heap_resize(void *block, int64_t bytes);
/* A copy of a text. */
char *heap_strdup(const char *text);

#define HEAP_NEW(type, n) ((type *)heap_zeroed(size_mul((int64_t)sizeof(type), (n))))

/* Keeps `bytes` in reserve for this process; 0 frees the reserve. */
void heap_reserve(int64_t bytes);
/* Sets the end of the out-of-memory sentence; NULL: none. The text must stay valid. */
void heap_advise(const char *advice);
/* True if the reserve was freed: the caller should save and stop. */
bool heap_low(void);
/* Prints the out-of-memory sentence and exits. `bytes` is the size of the request; 0: unknown. */
_Noreturn void heap_end(int64_t bytes);

/* Applies the same rule to libraries: jansson and libcrypto allocate through this file. When C++'s
 * `new` (oneDNN) finds no memory, it frees the reserve and tries again, then calls heap_end instead
 * of throwing std::bad_alloc. An uncaught C++ exception ends in one sentence, too. Call this once,
 * before any of these libraries is used. */
void heap_guard_libraries(void);

#endif
