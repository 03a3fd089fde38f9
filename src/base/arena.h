/* arena.h - memory with one owner and one lifetime.
 *
 * Memory allocated from an arena lives until arena_release; single allocations are never freed. A
 * function that takes a `struct arena *` allocates its results there. A zeroed struct is an empty
 * arena. Running out of host memory ends the program in one sentence (heap.h). */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/base.h"

struct arena_block;

struct arena {
    struct arena_block *last; /* private to arena.c */
};

/* Returns `size` zeroed bytes, aligned to 64. */
void *arena_alloc(struct arena *a, int64_t size);
/* Returns a copy of `text`. */
char *arena_strdup(struct arena *a, const char *text);
char *arena_printf(struct arena *a, const char *format, ...) PRINTF_LIKE(2, 3);
void arena_release(struct arena *a);

#define ARENA_NEW(a, type, n) ((type *)arena_alloc((a), (int64_t)sizeof(type) * (n)))

/* Doubles the capacity of a full array in an arena, for one more element. */
#define ARENA_GROW(a, array, count, capacity)                                             \
    do {                                                                                  \
        if ((count) == (capacity))                                                        \
            (array) = arena_regrow((a), (array), &(capacity), (int64_t)sizeof(*(array))); \
    } while (0)

void *arena_regrow(struct arena *a, void *array, int *capacity, int64_t element_size);

#endif
