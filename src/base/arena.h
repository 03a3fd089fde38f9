/* arena.h - memory with one owner and one lifetime.
 *
 * Everything that is taken from an arena lives until arena_release and is never freed singly.
 * A function that takes a `struct arena *` leaves its results there. A zeroed struct is an
 * empty arena. Host memory that runs out is a BUG: nothing sensible can follow. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/base.h"

struct arena_block;

struct arena {
    struct arena_block *last; /* private to arena.c */
};

/* `size` bytes, zeroed, aligned to 64. */
void *arena_alloc(struct arena *a, int64_t size);
/* A copy of `text`. */
char *arena_strdup(struct arena *a, const char *text);
char *arena_printf(struct arena *a, const char *format, ...) PRINTF_LIKE(2, 3);
void arena_release(struct arena *a);

#define ARENA_NEW(a, type, n) ((type *)arena_alloc((a), (int64_t)sizeof(type) * (n)))

/* Makes room for one more element in an array that lives in an arena; capacity doubles. */
#define ARENA_GROW(a, array, count, capacity)                                             \
    do {                                                                                  \
        if ((count) == (capacity))                                                        \
            (array) = arena_regrow((a), (array), &(capacity), (int64_t)sizeof(*(array))); \
    } while (0)

void *arena_regrow(struct arena *a, void *array, int *capacity, int64_t element_size);

#endif
