#include "tuning/tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tuning_init(struct tuning *t, const struct target *target, struct arena *a)
{
    *t = (struct tuning){.target = *target, .arena = a};
}

/* The index of the entry with this key, or the index at which to insert it. */
static int place_of(const struct tuning *t, const char *key)
{
    int low = 0, high = t->n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (strcmp(t->entry[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct tuning_entry *tuning_find(const struct tuning *t, const char *key)
{
    int i = t ? place_of(t, key) : 0;
    return t && i < t->n && !strcmp(t->entry[i].key, key) ? &t->entry[i] : NULL;
}

/* Rounds to the digits in the file, so that an entry does not change when written and read. */
static double nanoseconds(double us)
{
    return round(us * 1e3) / 1e3;
}

static int faster_first(const void *a, const void *b)
{
    const struct tuning_candidate *x = a, *y = b;
    if (x->us != y->us) return x->us < y->us ? -1 : 1;
    return strcmp(x->variant, y->variant);
}

void tuning_set(struct tuning *t, const struct tuning_entry *e)
{
    int i = place_of(t, e->key);
    if (i == t->n || strcmp(t->entry[i].key, e->key) != 0) {
        ARENA_GROW(t->arena, t->entry, t->n, t->capacity);
        memmove(&t->entry[i + 1], &t->entry[i], (size_t)(t->n - i) * sizeof *t->entry);
        t->n++;
    }
    t->entry[i] = *e;
    for (int k = 0; k < e->n; k++) {
        t->entry[i].candidate[k].us = nanoseconds(e->candidate[k].us);
        t->entry[i].candidate[k].spread_us = nanoseconds(e->candidate[k].spread_us);
    }
    qsort(t->entry[i].candidate, (size_t)e->n, sizeof e->candidate[0], faster_first);
}

const struct tuning_candidate *tuning_candidate(const struct tuning_entry *e, const char *variant)
{
    for (int i = 0; e && i < e->n; i++)
        if (!strcmp(e->candidate[i].variant, variant)) return &e->candidate[i];
    return NULL;
}

struct tuning_lookup *tuning_lookup_find(const struct tuning_lookups *q, const char *key)
{
    for (int i = 0; i < q->n; i++)
        if (!strcmp(q->lookup[i].key, key)) return &q->lookup[i];
    return NULL;
}

struct tuning_lookup *tuning_lookup_add(struct tuning_lookups *q, const char *key)
{
    ARENA_GROW(q->arena, q->lookup, q->n, q->capacity);
    struct tuning_lookup *one = &q->lookup[q->n++];
    *one = (struct tuning_lookup){0};
    snprintf(one->key, sizeof one->key, "%s", key);
    return one;
}

int tuning_missing(const struct tuning_lookups *q)
{
    int missing = 0;
    for (int i = 0; i < q->n; i++) missing += !q->lookup[i].entry;
    return missing;
}
