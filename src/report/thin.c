#include "report/thin.h"

#include "base/json.h"

#include <math.h>
#include <string.h>

static double value_at(const struct thin *t, int row, int column)
{
    double x;
    memcpy(&x, (const char *)t->row + t->size * (size_t)row + t->column[column].offset, sizeof x);
    return x;
}

/* Keeps what represents the rows first to end - 1 of a column. */
static void keep_extremes(const struct thin *t, int column, int first, int end, bool *kept)
{
    int low = -1, high = -1, none = -1;
    for (int i = first; i < end; i++) {
        double x = value_at(t, i, column);
        if (!isfinite(x)) {
            if (none < 0) none = i;
            continue;
        }
        if (low < 0 || x < value_at(t, low, column)) low = i;
        if (high < 0 || x > value_at(t, high, column)) high = i;
    }
    if (low >= 0) kept[low] = kept[high] = true;
    if (none >= 0) kept[none] = true;
}

int *thin_rows(const struct thin *t, struct arena *a, int *ret_kept)
{
    int n = t->rows, *index = ARENA_NEW(a, int, n + 1);
    bool *kept = ARENA_NEW(a, bool, n + 1);
    int part = n <= THIN_MOST ? 1 : ceil_div(n, THIN_MOST / (3 * t->columns + 2));
    for (int first = 0; first < n; first += part) {
        int end = first + part < n ? first + part : n;
        kept[first] = kept[end - 1] = true;
        for (int c = 0; c < t->columns; c++) keep_extremes(t, c, first, end, kept);
    }
    *ret_kept = 0;
    for (int i = 0; i < n; i++)
        if (kept[i]) index[(*ret_kept)++] = i;
    return index;
}

void thin_json(const struct thin *t, const int *index, int kept, json_t *o)
{
    for (int c = 0; c < t->columns; c++) {
        json_t *array = json_array();
        for (int k = 0; k < kept; k++)
            json_array_append_new(array, number_or_null(value_at(t, index[k], c)));
        json_object_set_new(o, t->column[c].name, array);
    }
}
