#include "lab/describe_errors.h"

#include <math.h>

/* The wrong elements: their number, the first wrong element, and the range of their rows and of
 * their columns. */
struct wrong {
    int64_t n, first, row_low, row_high, column_low, column_high;
};

static struct wrong find(const struct lab_problem *p, int64_t columns, const double *y,
                         const double *expected, double off)
{
    struct wrong w = {.first = -1, .row_low = INT64_MAX, .column_low = INT64_MAX};
    for (int64_t i = 0; i < p->out; i++) {
        if (fabs(y[i] - expected[i]) <= off) continue; /* NaN is wrong */
        int64_t row = i / columns, column = i % columns;
        if (w.first < 0) w.first = i;
        w.n++;
        w.row_low = min_i64(w.row_low, row);
        w.row_high = max_i64(w.row_high, row);
        w.column_low = min_i64(w.column_low, column);
        w.column_high = max_i64(w.column_high, column);
    }
    return w;
}

static const char *place_of(int64_t i, int64_t columns, bool matrix, struct arena *a)
{
    return matrix ? arena_printf(a, "row %lld, column %lld", (long long)(i / columns),
                                 (long long)(i % columns))
                  : arena_printf(a, "element %lld", (long long)i);
}

/* ", all in rows from 128 on" if the range includes the last of n rows but not the first. */
static const char *range(const char *what, int64_t low, int64_t high, int64_t n, struct arena *a)
{
    if (low == 0 || high != n - 1) return "";
    return arena_printf(a, ", all in %s from %lld on", what, (long long)low);
}

struct lab_where lab_describe_errors(const struct lab_problem *p, const double *y,
                                     const double *expected, double norm, double allowed,
                                     struct arena *a)
{
    enum { FACTOR = 8 };
    bool matrix = p->columns > 0;
    int64_t columns = matrix ? p->columns : p->out;
    struct wrong w = find(p, columns, y, expected, FACTOR * allowed * norm / sqrt((double)p->out));
    if (!w.n) return (struct lab_where){"no single element stands out: all are a little off", 1};
    const char *rows = matrix ? range("rows", w.row_low, w.row_high, p->out / columns, a) : "";
    const char *rest =
        range(matrix ? "columns" : "elements", w.column_low, w.column_high, columns, a);
    const char *is =
        isnan(y[w.first]) ? "NaN, perhaps never written," : arena_printf(a, "%.4g", y[w.first]);
    const char *words = arena_printf(
        a, "%s is %s instead of %.4g; %lld of %lld elements are wrong%s%s%s",
        place_of(w.first, columns, matrix, a), is, expected[w.first], (long long)w.n,
        (long long)p->out, rows, rest, *rows || *rest ? ": is the last tile guarded?" : "");
    return (struct lab_where){words, (double)w.n / (double)p->out};
}
