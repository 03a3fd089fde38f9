#include "present/table_cells.h"

#include "base/arena.h"
#include "base/stats.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>

struct table table_new(const struct table_column *column, int columns, int rows, struct arena *a)
{
    return (struct table){column, ARENA_NEW(a, struct table_cell, (int64_t)rows * columns), columns,
                          rows};
}

void table_set(struct table *t, int row, int column, int digits, double x, struct arena *a)
{
    if (!isfinite(x)) return;
    int before = x == 0 ? 1 : 1 + (int)floor(log10(fabs(x))); /* digits before the point */
    if (fabs(x) >= pow(10, before) - 0.5 * pow(10, before - digits)) before++; /* 0.9996 is 1.00 */
    int decimals = x == floor(x) || before >= digits ? 0 : digits - before;
    *table_at(t, row, column) = (struct table_cell){arena_printf(a, "%.*f", decimals, x), x};
}

void table_set_us(struct table *t, int row, int column, int digits, double ms, struct arena *a)
{
    char text[32];
    *table_at(t, row, column) =
        (struct table_cell){arena_strdup(a, str_number(text, 1e3 * ms, digits)), ms};
}

void table_set_std(struct table *t, int row, int column, const struct stats *s, struct arena *a)
{
    if (s->n > 1) table_set(t, row, column, 2, s->std, a);
}

void table_set_error(struct table *t, int row, int column, double x, struct arena *a)
{
    table_set_as(t, row, column, x, arena_printf(a, "%.1e", x));
}

void table_set_as(struct table *t, int row, int column, double x, const char *text)
{
    if (isfinite(x)) *table_at(t, row, column) = (struct table_cell){text, x};
}

void table_set_text(struct table *t, int row, int column, const char *text)
{
    *table_at(t, row, column) = (struct table_cell){text, 0};
}

void table_set_bytes(struct table *t, int row, int column, double bytes, struct arena *a)
{
    char text[32];
    if (isfinite(bytes))
        table_set_as(t, row, column, bytes, arena_strdup(a, str_bytes(text, bytes)));
}

void table_set_count(struct table *t, int row, int column, double x, struct arena *a)
{
    char text[32];
    if (!isfinite(x)) return;
    if (fabs(x) < 0x1p53)
        str_thousands(text, (int64_t)round(x));
    else
        snprintf(text, sizeof text, "%.3g", x);
    *table_at(t, row, column) = (struct table_cell){arena_strdup(a, text), x};
}
