#include "base/stats.h"

#include "base/heap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The q-quantile of the sorted series, interpolated linearly. */
static double quantile(const double *sorted, int n, double q)
{
    double at = q * (n - 1);
    int below = (int)at;
    if (below + 1 >= n) return sorted[n - 1];
    return sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]);
}

struct stats stats_of(const double *x, int n)
{
    struct stats s = {.n = n};
    if (n <= 0) return (struct stats){0};
    double *sorted = HEAP_NEW(double, n);
    memcpy(sorted, x, sizeof(double) * (size_t)n);
    qsort(sorted, (size_t)n, sizeof(double), ascending);

    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) sum += sorted[i];
    s.mean = sum / n;
    /* Two-pass: subtracting the mean first avoids cancellation in the sum of squares. */
    for (int i = 0; i < n; i++) squares += (sorted[i] - s.mean) * (sorted[i] - s.mean);
    s.std = n > 1 ? sqrt(squares / (n - 1)) : 0;
    s.min = sorted[0];
    s.max = sorted[n - 1];
    s.median = quantile(sorted, n, 0.5);
    s.p25 = quantile(sorted, n, 0.25);
    s.p75 = quantile(sorted, n, 0.75);
    s.p95 = quantile(sorted, n, 0.95);
    free(sorted);
    return s;
}

int64_t warm_up_of(int64_t n)
{
    return n / 4 < 5 ? n / 4 : 5;
}
