#include "base/verdict.h"

#include "base/heap.h"
#include "base/rng.h"
#include "base/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const double VERDICT_LEAST = 1.02, VERDICT_CLEAR = 3;

enum { SAMPLES = 2000, PAIRS_MOST = 512, SEED = 1 };
static const double TAIL = 0.005; /* the share on each side of a 99 % interval */

const char *verdict_name(enum verdict_kind kind)
{
    static const char *const names[] = {"", "cannot tell", "same", "faster", "slower"};
    return names[kind];
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle(const double *sorted, int n)
{
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/* --- the interval of a median ----------------------------------------------------------------- */

/* The largest k so that the k-th smallest of n independent numbers is below their median with a
 * probability of at least 1 - TAIL; 0: there is none. */
static int rank_of_interval(int n)
{
    double sum = 0;
    int k = 0;
    for (; k < n; k++) {
        sum += exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2));
        if (sum > TAIL) break;
    }
    return k;
}

/* The median of one bootstrap sample, made of runs of `length` neighbors; the series wraps around.
 * `rank` is the index of each number in `sorted`; `count` has space for n numbers. */
static double sample_median(const double *sorted, const int *rank, int n, int length, int sample,
                            int *count)
{
    double low = 0;
    int seen = 0, i = 0;
    memset(count, 0, (size_t)n * sizeof *count);
    for (int filled = 0; filled < n; i++) {
        int64_t at = rng_below(SEED, RNG_VERDICT, (uint32_t)sample, (uint64_t)i, n);
        for (int k = 0; k < length && filled < n; k++, filled++) count[rank[(at + k) % n]]++;
    }
    for (i = 0; seen <= (n - 1) / 2; i++) seen += count[i];
    low = sorted[i - 1];
    for (; seen <= n / 2; i++) seen += count[i];
    return (low + sorted[i - 1]) / 2;
}

/* A run has sqrt(n) pairs, so that noise that outlasts one pair stays in one run. */
static void widen_by_bootstrap(const double *x, const double *sorted, int n, double *low,
                               double *high)
{
    int *rank = HEAP_NEW(int, n), *count = HEAP_NEW(int, n);
    double *median = HEAP_NEW(double, SAMPLES);
    int length = (int)(sqrt(n) + 0.5), out = (int)(TAIL * SAMPLES);
    for (int i = 0; i < n; i++) {
        const double *at = bsearch(&x[i], sorted, (size_t)n, sizeof *x, ascending);
        rank[i] = (int)(at - sorted);
    }
    for (int s = 0; s < SAMPLES; s++) median[s] = sample_median(sorted, rank, n, length, s, count);
    qsort(median, SAMPLES, sizeof *median, ascending);
    *low = fmin(*low, median[out]);
    *high = fmax(*high, median[SAMPLES - 1 - out]);
    free(median);
    free(count);
    free(rank);
}

/* --- the verdict ------------------------------------------------------------------------------ */

/* `median`, `low` and `high` are logarithms of ratios. */
static struct verdict conclude(struct verdict v, double median, double low, double high)
{
    double least = log(v.pairs < VERDICT_PAIRS ? VERDICT_CLEAR : VERDICT_LEAST);
    v.speed = exp(median);
    v.low = exp(low);
    v.high = exp(high);
    v.kind = low > least                                                  ? VERDICT_FASTER
             : high < -least                                              ? VERDICT_SLOWER
             : v.pairs >= VERDICT_PAIRS && low >= -least && high <= least ? VERDICT_SAME
                                                                          : VERDICT_UNCERTAIN;
    return v;
}

static bool is_time(double x)
{
    return isfinite(x) && x > 0;
}

static struct verdict judge(double *x, int n)
{
    struct verdict v = {.kind = VERDICT_UNCERTAIN, .pairs = n, .speed = 1, .high = INFINITY};
    double *sorted = HEAP_NEW(double, n + 1);
    memcpy(sorted, x, (size_t)n * sizeof *x);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    if (n) v.speed = exp(middle(sorted, n));
    if (n >= VERDICT_FEW) {
        int k = rank_of_interval(n);
        double low = sorted[k ? k - 1 : 0], high = sorted[k ? n - k : n - 1];
        if (n >= VERDICT_PAIRS) widen_by_bootstrap(x, sorted, n, &low, &high);
        v = conclude(v, middle(sorted, n), low, high);
    }
    free(sorted);
    return v;
}

struct verdict verdict_of_pairs(const double *first_ms, const double *second_ms, int n)
{
    double *x = HEAP_NEW(double, n + 1);
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (is_time(first_ms[i]) && is_time(second_ms[i]))
            x[kept++] = log(first_ms[i] / second_ms[i]);
    int per = (kept + PAIRS_MOST - 1) / PAIRS_MOST, chunks = 0;
    for (int i = 0; per > 1 && i < kept; i += per)
        x[chunks++] = stats_of(x + i, kept - i < per ? kept - i : per).median;
    struct verdict v = judge(x, per > 1 ? chunks : kept);
    free(x);
    return v;
}

int verdict_chunks(const double *x, int n, double ret[VERDICT_CHUNKS])
{
    int chunks = n < VERDICT_CHUNKS ? n : VERDICT_CHUNKS;
    for (int i = 0; i < chunks; i++) {
        int begin = (int)((int64_t)n * i / chunks), end = (int)((int64_t)n * (i + 1) / chunks);
        ret[i] = stats_of(x + begin, end - begin).median;
    }
    return chunks;
}

static int chunks_of(const double *ms, int n, double ret[VERDICT_CHUNKS])
{
    double *x = HEAP_NEW(double, n + 1);
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (is_time(ms[i])) x[kept++] = log(ms[i]);
    int chunks = verdict_chunks(x, kept, ret);
    free(x);
    return chunks;
}

struct verdict verdict_of_series(const double *first_ms, int n_first, const double *second_ms,
                                 int n_second)
{
    double x[VERDICT_CHUNKS], y[VERDICT_CHUNKS], ratio[VERDICT_CHUNKS * VERDICT_CHUNKS];
    int nx = chunks_of(first_ms, n_first, x), ny = chunks_of(second_ms, n_second, y), n = 0;
    struct verdict v = {.kind = VERDICT_UNCERTAIN, .apart = true, .speed = 1, .high = INFINITY};
    v.pairs = nx < ny ? nx : ny;
    if (!v.pairs) return v;
    for (int i = 0; i < nx; i++)
        for (int k = 0; k < ny; k++) ratio[n++] = x[i] - y[k];
    qsort(ratio, (size_t)n, sizeof *ratio, ascending);
    v.speed = exp(middle(ratio, n));
    if (v.pairs < VERDICT_FEW) return v;
    int out = (int)(TAIL * n);
    return conclude(v, middle(ratio, n), ratio[out], ratio[n - 1 - out]);
}
