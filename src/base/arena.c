#include "base/arena.h"

#include "base/heap.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, BLOCK_BYTES = 64 * 1024 };

struct arena_block {
    struct arena_block *previous;
    int64_t used, capacity;
};

void *arena_alloc(struct arena *a, int64_t size)
{
    BUG_IF(size < 0, "allocation of %lld bytes", (long long)size);
    size = round_up(size ? size : 1, ALIGNMENT);
    if (!a->last || a->last->used + size > a->last->capacity) {
        int64_t head = round_up((int64_t)sizeof(struct arena_block), ALIGNMENT);
        int64_t capacity = head + (size > BLOCK_BYTES ? size : BLOCK_BYTES);
        struct arena_block *b = heap_aligned(ALIGNMENT, capacity);
        *b = (struct arena_block){.previous = a->last, .used = head, .capacity = capacity};
        a->last = b;
    }
    char *p = (char *)a->last + a->last->used;
    a->last->used += size;
    memset(p, 0, (size_t)size);
    return p;
}

char *arena_strdup(struct arena *a, const char *text)
{
    size_t n = strlen(text) + 1;
    return memcpy(arena_alloc(a, (int64_t)n), text, n);
}

char *arena_printf(struct arena *a, const char *format, ...)
{
    va_list args, copy_of_args;
    va_start(args, format);
    va_copy(copy_of_args, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 && errno == ENOMEM) heap_end(0);
    BUG_IF(n < 0, "invalid format %s", format);
    char *text = arena_alloc(a, n + 1);
    vsnprintf(text, (size_t)n + 1, format, copy_of_args);
    va_end(copy_of_args);
    return text;
}

void *arena_regrow(struct arena *a, void *array, int *capacity, int64_t element_size)
{
    int wider = *capacity ? *capacity * 2 : 16;
    void *copy = arena_alloc(a, wider * element_size);
    if (*capacity) memcpy(copy, array, (size_t)(*capacity * element_size));
    *capacity = wider;
    return copy;
}

void arena_release(struct arena *a)
{
    for (struct arena_block *b = a->last; b;) {
        struct arena_block *previous = b->previous;
        free(b);
        b = previous;
    }
    a->last = NULL;
}
