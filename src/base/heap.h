/* heap.h - memory of the host, which is there or the program ends in one sentence.
 *
 * Functions that allocate here never return NULL, so callers have nothing to check. Where no more
 * memory is to be had, the reserve is given up and the request repeated; without a reserve, or if
 * that fails too, the sentence goes to stderr and the process exits with 1, at once: no core dump,
 * no exit handlers, nothing unwound. Files that were complete stay complete, since every file is
 * written under another name first.
 *
 * A training keeps a reserve. Once it was needed, heap_low() is true; the loop asks after each
 * step, saves a checkpoint and returns ST_MEMORY, as it does for Ctrl-C. Nothing is saved within
 * an allocation, in the middle of a step. The promise: where memory runs out during a training by
 * less than the reserve, the step is finished and a checkpoint is saved. Where it runs out by
 * more, or nothing can be allocated at all, the checkpoints saved before stand. A process that the
 * kernel kills because a limit is exceeded later, when memory is touched, gets no sentence:
 * engine_open asks beforehand (engine/fit.h).
 *
 * Large blocks whose failure has a better answer (tensors: another batch_size) are allocated by
 * their owners, who return ST_MEMORY. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include "base/checked.h"

/* Free all of them with free(). The contents of heap_alloc are undefined; heap_zeroed clears. */
void *heap_alloc(int64_t bytes);
void *heap_zeroed(int64_t bytes);
/* `alignment` is a power of two; `bytes` is rounded up to a multiple of it. */
void *heap_aligned(int64_t alignment, int64_t bytes);
/* As realloc; `block` may be NULL. */
void *heap_resize(void *block, int64_t bytes);
/* A copy of a text. */
char *heap_strdup(const char *text);

#define HEAP_NEW(type, n) ((type *)heap_zeroed(size_mul((int64_t)sizeof(type), (n))))

/* Keeps `bytes` in reserve for this process; 0 gives them back. */
void heap_reserve(int64_t bytes);
/* The end of the sentence if memory runs out all the same; NULL: none. It is kept, not copied, and
 * printed as it is. */
void heap_advise(const char *advice);
/* The reserve was needed: save and stop. */
bool heap_low(void);
/* Prints the sentence and exits. `bytes` is the size of the request; 0: unknown. */
_Noreturn void heap_end(int64_t bytes);

/* Applies the same rule to libraries: jansson and libcrypto allocate here; `new` of C++ (oneDNN)
 * takes the reserve before it throws std::bad_alloc, and ends here instead; an exception that
 * no one catches ends in one sentence, too. Call it once, before any of them is used. */
void heap_guard_libraries(void);

#endif
