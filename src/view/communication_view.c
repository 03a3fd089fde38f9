#include "view/communication_view.h"

#include "present/table_cells.h"

/* clang-format off */
#define COLUMN_LIST(X) \
    X(COLUMN_NAME, "name", "collective", "its place in the model", false) \
    X(COLUMN_OP, "op", "operator", "what it does", false) \
    X(COLUMN_BYTES, "bytes", "bytes", "of its range", true) \
    X(COLUMN_LINK, "link_bytes", "sent", "bytes that a rank sends: 2 (N - 1) / N of an all-reduce", true) \
    X(COLUMN_MS, "ms", "ms", "from the arrival of the last rank to its end", true) \
    X(COLUMN_RATE, "gb_per_s", "GB/s", "bytes sent / that time", true) \
    X(COLUMN_CEILING, "ceiling_percent", "% of link", "share of the GB/s of strobe machine --ranks=N at its size", true) \
    X(COLUMN_WAITED, "waited_ms", "waited ms", "from the arrival of rank 0 to that of the last rank", true)
/* clang-format on */

enum { COLUMN_LIST(TABLE_ID) COLUMNS };
static const struct table_column columns[] = {COLUMN_LIST(TABLE_COLUMN)};

static void set_row(struct table *t, int row, const struct profile_collective *x, const char *name,
                    struct arena *a)
{
    table_set_text(t, row, COLUMN_NAME, name);
    table_set_text(t, row, COLUMN_OP, x->op == OP_LEAF ? "" : op_def(x->op)->name);
    table_set_bytes(t, row, COLUMN_BYTES, x->bytes, a);
    table_set_bytes(t, row, COLUMN_LINK, (int64_t)x->link_bytes, a);
    table_set(t, row, COLUMN_MS, 4, x->ms, a);
    double rate = x->ms > 0 ? 1e3 * x->link_bytes / x->ms : 0;
    if (rate > 0) table_set(t, row, COLUMN_RATE, 3, 1e-9 * rate, a);
    if (x->ceiling > 0) table_set(t, row, COLUMN_CEILING, 3, 100 * rate / x->ceiling, a);
    table_set(t, row, COLUMN_WAITED, 3, x->waited_ms, a);
}

struct table communication_table(const struct profile_communication *c, int rows, struct arena *a)
{
    bool cut = rows && c->collectives > rows + 1;
    int shown = cut ? rows : c->collectives;
    struct profile_collective rest = {.op = OP_LEAF};
    struct table t = table_new(columns, COLUMNS, shown + cut, a);
    for (int i = 0; i < c->collectives; i++) {
        const struct profile_collective *x = &c->collective[i];
        if (i < shown) set_row(&t, i, x, x->name, a);
        if (i < shown) continue;
        rest.bytes += x->bytes;
        rest.link_bytes += x->link_bytes;
        rest.ms += x->ms;
        rest.waited_ms += x->waited_ms;
    }
    if (cut) set_row(&t, shown, &rest, arena_printf(a, "%d more", c->collectives - shown), a);
    return t;
}
