/* Places spans from the largest to the smallest, each in the lowest gap into which it fits. For a
 * training step, whose bytes are mostly values saved for the backward pass, the total reaches the
 * lower bound. */
#include "base/checked.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

static int larger_first(const void *a, const void *b)
{
    const struct place_span *x = *(const struct place_span *const *)a;
    const struct place_span *y = *(const struct place_span *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : 1;
}

static bool live_together(const struct place_span *a, const struct place_span *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest offset at which `s` fits among the `n` placed spans, which are sorted by offset. */
static int64_t lowest_gap(const struct place_span *s, struct place_span *const *placed, int n)
{
    int64_t offset = 0;
    for (int k = 0; k < n; k++) {
        if (!live_together(s, placed[k])) continue;
        if (placed[k]->offset - offset >= s->bytes) break;
        int64_t end = size_round_up(size_add(placed[k]->offset, placed[k]->bytes), ALIGNMENT);
        if (end > offset) offset = end;
    }
    return offset;
}

static void insert(struct place_span *s, struct place_span **placed, int n)
{
    int low = 0, high = n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (placed[middle]->offset <= s->offset)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(placed + low + 1, placed + low, sizeof *placed * (size_t)(n - low));
    placed[low] = s;
}

int64_t place_spans(struct place_span *span, int n, struct arena *scratch)
{
    struct place_span **order = ARENA_NEW(scratch, struct place_span *, n);
    struct place_span **placed = ARENA_NEW(scratch, struct place_span *, n + 1);
    int64_t total = 0;
    for (int i = 0; i < n; i++) order[i] = &span[i];
    qsort(order, (size_t)n, sizeof *order, larger_first);
    for (int i = 0; i < n; i++) {
        order[i]->offset = lowest_gap(order[i], placed, i);
        insert(order[i], placed, i);
        total = max_i64(total, size_add(order[i]->offset, order[i]->bytes));
    }
    return size_round_up(total, ALIGNMENT);
}

bool place_valid(const struct place_span *span, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++) {
            bool apart = size_add(span[i].offset, span[i].bytes) <= span[k].offset ||
                         size_add(span[k].offset, span[k].bytes) <= span[i].offset;
            if (live_together(&span[i], &span[k]) && !apart) return false;
        }
    return true;
}
