#include "view/communication_view.h"

#include "present/table_cells.h"

/* clang-format off */
#define COLUMNS(X) \
    X("name", "collective", "its place in the model", TEXT, name) \
    X("op", "operator", "what it does", TEXT, x->op == OP_LEAF ? "" : op_def(x->op)->name) \
    X("bytes", "bytes", "of its range", BYTES, true, x->bytes) \
    X("link_bytes", "sent", "bytes that a rank sends: 2 (N - 1) / N of an all-reduce", BYTES, true, (int64_t)x->link_bytes) \
    X("ms", "ms", "from the arrival of the last rank to its end; of a process, from its own arrival", NUMBER, true, 4, x->ms) \
    X("gb_per_s", "GB/s", "bytes sent / that time", NUMBER, rate > 0, 3, 1e-9 * rate) \
    X("ceiling_percent", "% of link", "share of the GB/s of strobe machine --ranks=N at its size", NUMBER, x->ceiling > 0, 3, 100 * rate / x->ceiling) \
    X("waited_ms", "waited ms", "from the arrival of rank 0 to that of the last rank", NUMBER, x->waited_ms >= 0, 3, x->waited_ms)
/* clang-format on */

static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

static void set_row(struct table_row row, const struct profile_collective *x, const char *name)
{
    double rate = x->ms > 0 ? 1e3 * x->link_bytes / x->ms : 0;
    COLUMNS(TABLE_CELL)
}

struct table communication_table(const struct profile_communication *c, int rows, struct arena *a)
{
    bool cut = rows && c->collectives > rows + 1;
    int shown = cut ? rows : c->collectives;
    struct profile_collective rest = {.op = OP_LEAF};
    struct table t = table_new(columns, COUNT_OF(columns), shown + cut, a);
    for (int i = 0; i < c->collectives; i++) {
        const struct profile_collective *x = &c->collective[i];
        if (i < shown) set_row((struct table_row){&t, i, 0, a}, x, x->name);
        if (i < shown) continue;
        rest.bytes += x->bytes;
        rest.link_bytes += x->link_bytes;
        rest.ms += x->ms;
        rest.waited_ms += x->waited_ms;
    }
    if (cut)
        set_row((struct table_row){&t, shown, 0, a}, &rest,
                arena_printf(a, "%d more", c->collectives - shown));
    return t;
}
