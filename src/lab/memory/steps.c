/* Finds the flat parts of a curve. With a cache of n bytes the latency is flat up to about n bytes;
 * beyond n, the latency rises over an octave or two until the next level is flat. The search takes
 * the longest flat part first; points between parts belong to no part. Values are compared by
 * ratios. */
#include "lab/memory/memory.h"

#include "base/stats.h"

#include <math.h>
#include <string.h>

/* SPREAD: during the search, the values of a part differ by at most this factor. END: then points
 * at the ends that differ from the median by more than this factor are removed. STEP: neighboring
 * parts differ by at least this factor; parts that differ less are joined. */
static const double SPREAD = 1.3, END = 1.15, STEP = 1.4;
static const double WIDTH = 1; /* least width of a part, in octaves */

struct search {
    const int64_t *size;
    const double *y; /* smoothed */
    int n;
    struct memory_plateau *ret;
    int plateaus;
};

static double median_of(const double *y, int first, int last)
{
    return stats_of(y + first, last - first + 1).median;
}

/* Medians of three neighbors: this removes single outliers and does not move steps. */
static void smooth(const double *y, int n, double *ret)
{
    memcpy(ret, y, sizeof *y * (size_t)n);
    for (int i = 1; i + 1 < n; i++) ret[i] = median_of(y, i - 1, i + 1);
}

/* The end of the longest part that begins at `first`. */
static int grow(const struct search *s, int first, int end)
{
    double low = s->y[first], high = low;
    int last = first;
    for (int i = first + 1; i < end; i++) {
        low = fmin(low, s->y[i]);
        high = fmax(high, s->y[i]);
        if (high > SPREAD * low) break;
        last = i;
    }
    return last;
}

static bool is_wide(const struct search *s, int first, int last)
{
    return log2((double)s->size[last] / (double)s->size[first]) >= WIDTH - 1e-9;
}

/* Appends the parts of points first ... end - 1, from left to right. */
static void find(struct search *s, int first, int end)
{
    int from = -1, to = -1;
    double widest = 0;
    for (int i = first; i < end; i++) {
        int last = grow(s, i, end);
        double width = log2((double)s->size[last] / (double)s->size[i]);
        if (!is_wide(s, i, last) || width <= widest) continue;
        widest = width;
        from = i;
        to = last;
    }
    if (from < 0) return;
    find(s, first, from);
    if (s->plateaus < MEMORY_PLATEAUS)
        s->ret[s->plateaus++] = (struct memory_plateau){from, to, median_of(s->y, from, to)};
    find(s, to + 1, end);
}

/* Joins neighboring parts that are one level, and removes points at the ends of a part that belong
 * to a step. */
static void refine(struct search *s)
{
    int n = 0;
    for (int i = 0; i < s->plateaus; i++) {
        struct memory_plateau *last = n ? &s->ret[n - 1] : NULL, *p = &s->ret[i];
        if (last && p->value < STEP * last->value) {
            last->last = p->last;
            last->value = median_of(s->y, last->first, last->last);
        } else {
            s->ret[n++] = *p;
        }
    }
    s->plateaus = n;
    for (int i = 0; i < n; i++) {
        struct memory_plateau *p = &s->ret[i];
        while (i + 1 < n && p->last > p->first && s->y[p->last] > END * p->value) p->last--;
        while (i > 0 && p->first < p->last && END * s->y[p->first] < p->value) p->first++;
    }
}

int memory_plateaus(const int64_t *size, const double *cost, int n,
                    struct memory_plateau ret[MEMORY_PLATEAUS])
{
    double known[MEMORY_SIZES], y[MEMORY_SIZES];
    int64_t at[MEMORY_SIZES];
    int index[MEMORY_SIZES] = {0}, m = 0;
    BUG_IF(n > MEMORY_SIZES, "%d sizes", n);
    for (int i = 0; i < n; i++) {
        if (!(cost[i] > 0) || !isfinite(cost[i])) continue;
        known[m] = cost[i];
        at[m] = size[i];
        index[m++] = i;
    }
    smooth(known, m, y);
    struct search s = {at, y, m, ret, 0};
    find(&s, 0, m);
    refine(&s);
    for (int i = 0; i < s.plateaus; i++) {
        ret[i].first = index[ret[i].first];
        ret[i].last = index[ret[i].last];
    }
    return s.plateaus;
}

void memory_match(const int64_t *size, const struct memory_plateau *p, int plateaus,
                  const struct memory_cache *cache, int caches, int *ret)
{
    static const double NEAR = 1.5; /* octaves */
    int next = 0;
    for (int c = 0; c < caches; c++) {
        double nearest = NEAR;
        ret[c] = -1;
        for (int i = next; i + 1 < plateaus; i++) {
            double off = fabs(log2((double)size[p[i].last] / (double)cache[c].bytes));
            if (off > nearest) continue;
            nearest = off;
            ret[c] = i;
        }
        if (ret[c] >= 0) next = ret[c] + 1;
    }
}
