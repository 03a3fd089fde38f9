#include "view/bpe_view.h"

#include "base/str.h"
#include "present/table_cells.h"
#include "view/lab_view.h"

/* clang-format off */
#define COLUMNS(X) \
    X("rung", "rung", "the encoder; --show=RUNG prints its file", TEXT, x->rung->name) \
    X("idea", "idea", "what it adds", TEXT, arena_strdup(row.arena, lab_idea(x->rung, idea, IDEA))) \
    X("ms_median", "ms", "median time of the whole text", NUMBER, ran, 4, ms->median) \
    X("ms_std", "std", "standard deviation of the samples", STD, ran, ms) \
    X("samples", "n", "number of samples", NUMBER, ran, 0, ms->n) \
    X("mb_per_s", "MB/s", "bytes of text per second, on one core", NUMBER, ran, 4, x->rate * 1e-6) \
    X("ns_per_piece", "ns/piece", "time for each piece of the pattern: a word, mostly", NUMBER, ran, 3, ms->median * 1e6 / (double)pieces) \
    X("verdict", "beside the one above", "by the rule of docs/MEASURING.md", TEXT, ran ? judge_name(&x->previous) : NULL) \
    X("times_previous", "x above", "speed relative to the rung above, in turns", NUMBER, ran && x->previous.verdict.kind, 3, x->previous.verdict.speed) \
    X("times_first", "x first", "speed relative to the first rung, in turns", NUMBER, ran && x->first.verdict.kind, 3, x->first.verdict.speed) \
    X("note", "note", "why there is no time", TEXT, ran ? NULL : "wrong: other ids than the first rung")
/* clang-format on */
static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

static void set_result(struct table_row row, const struct bpe_result *x, int64_t pieces)
{
    enum { IDEA = 120 };
    char idea[IDEA];
    const struct stats *ms = &x->time.total;
    bool ran = !x->wrong;
    COLUMNS(TABLE_CELL)
}

/* A sentence: what limits a rung, and why it is not faster than the rung above. */
static const char *why(const struct bpe_result *x, struct arena *a)
{
    enum verdict_kind kind = x->previous.verdict.kind;
    const char *s = arena_printf(a, "what is left is %s", x->rung->bound);
    if (kind == VERDICT_FASTER)
        s = arena_printf(a, "takes %.0f %% of the time of the rung above; %s",
                         100 / x->previous.verdict.speed, s);
    if ((kind == VERDICT_SAME || kind == VERDICT_SLOWER) && x->rung->no_gain)
        s = arena_printf(a, "not faster than the rung above: %s; %s", x->rung->no_gain, s);
    return s;
}

void bpe_sheet(const struct bpe_run *r, const char *what, struct sheet *s, struct arena *a)
{
    char bytes[32], ids[32], pieces[32];
    int rows = 0;
    while (bpe_rungs[rows].name) rows++;
    *s = (struct sheet){.name = "lab-bpe"};
    s->title =
        arena_printf(a, "lab bpe, %s: How does text become tokens, and what makes it slow?", what);
    struct sheet_table *t = sheet_add(s, NULL, columns, COUNT_OF(columns), rows, a);
    const struct lab_rung **rung = ARENA_NEW(a, const struct lab_rung *, rows);
    const char **reason = ARENA_NEW(a, const char *, rows);
    for (int i = 0; i < rows; i++) {
        set_result((struct table_row){&t->table, i, 0, a}, &r->result[i], r->pieces);
        rung[i] = r->result[i].rung;
        reason[i] = r->result[i].wrong ? "" : why(&r->result[i], a);
    }
    t->chart = (struct sheet_chart){.kind = SHEET_BARS,
                                    .title = "bpe: time of the text",
                                    .label = {"rung"},
                                    .labels = 1,
                                    .y = "ms_median",
                                    .unit = SHEET_MS};
    lab_add_reasons(s, rows, rung, reason, a);
    sheet_note(s, arena_printf(a, "%s bytes, %s pieces, %s ids; one core, %s",
                               str_thousands(bytes, r->options->bytes),
                               str_thousands(pieces, r->pieces), str_thousands(ids, r->ids),
                               r->options->warm ? "the caches keep the words of the call before"
                                                : "cold: every call begins with empty caches"));
    sheet_note(s, "every rung gives the ids of the first one, before and after the timing");
    lab_add_sources(s, rows, rung, a);
}
