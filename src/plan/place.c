/* Places the largest span first, each at the lowest gap that fits. For a training step, where
 * values saved for the backward pass dominate, this meets the lower bound. */
#include "base/checked.h"
#include "plan/plan.h"

#include <stdlib.h>

enum { ALIGNMENT = 64 };

static int larger_first(const void *a, const void *b)
{
    const struct place_span *x = *(const struct place_span *const *)a;
    const struct place_span *y = *(const struct place_span *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : 1;
}

static int lower_first(const void *a, const void *b)
{
    const struct place_span *x = *(const struct place_span *const *)a;
    const struct place_span *y = *(const struct place_span *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static bool live_together(const struct place_span *a, const struct place_span *b)
{
    return a->first <= b->last && b->first <= a->last;
}

int64_t place_spans(struct place_span *span, int n, struct arena *scratch)
{
    struct place_span **order = ARENA_NEW(scratch, struct place_span *, n);
    struct place_span **near = ARENA_NEW(scratch, struct place_span *, n);
    int64_t total = 0;
    for (int i = 0; i < n; i++) order[i] = &span[i];
    qsort(order, (size_t)n, sizeof *order, larger_first);
    for (int i = 0; i < n; i++) {
        int count = 0;
        for (int k = 0; k < i; k++)
            if (live_together(order[i], order[k])) near[count++] = order[k];
        qsort(near, (size_t)count, sizeof *near, lower_first);
        int64_t offset = 0;
        for (int k = 0; k < count; k++) {
            if (near[k]->offset - offset >= order[i]->bytes) break;
            int64_t end = size_round_up(size_add(near[k]->offset, near[k]->bytes), ALIGNMENT);
            if (end > offset) offset = end;
        }
        order[i]->offset = offset;
        total = max_i64(total, size_add(offset, order[i]->bytes));
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
