#include "view/bpe_view.h"

#include "base/str.h"
#include "present/table_cells.h"

/* clang-format off */
#define COLUMN_LIST(X) \
    X(COLUMN_RUNG, "rung", "rung", "the encoder; --show=RUNG prints its file", false) \
    X(COLUMN_IDEA, "idea", "idea", "what it adds", false) \
    X(COLUMN_MS, "ms_median", "ms", "median time of the whole text", true) \
    X(COLUMN_STD, "ms_std", "std", "standard deviation of the samples", true) \
    X(COLUMN_SAMPLES, "samples", "n", "number of samples", true) \
    X(COLUMN_RATE, "mb_per_s", "MB/s", "bytes of text per second, on one core", true) \
    X(COLUMN_NS, "ns_per_piece", "ns/piece", "time for each piece of the pattern: a word, mostly", true) \
    X(COLUMN_VERDICT, "verdict", "beside the one above", "by the rule of docs/MEASURING.md", false) \
    X(COLUMN_PREVIOUS, "times_previous", "x above", "speed relative to the rung above, in turns", true) \
    X(COLUMN_FIRST, "times_first", "x first", "speed relative to the first rung, in turns", true) \
    X(COLUMN_NOTE, "note", "note", "why there is no time", false)
/* clang-format on */
enum { COLUMN_LIST(TABLE_ID) COLUMNS };
static const struct table_column columns[] = {COLUMN_LIST(TABLE_COLUMN)};

static void set_speed(struct table *t, int row, int column, const struct judgement *j,
                      struct arena *a)
{
    if (j->verdict.kind) table_set(t, row, column, 3, j->verdict.speed, a);
}

static void set_result(struct table *t, int row, const struct bpe_run *r,
                       const struct bpe_result *x, struct arena *a)
{
    enum { IDEA = 120 };
    char idea[IDEA];
    const struct stats *ms = &x->time.total;
    table_set_text(t, row, COLUMN_RUNG, x->rung->name);
    table_set_text(t, row, COLUMN_IDEA, arena_strdup(a, lab_idea(x->rung, idea, IDEA)));
    if (x->wrong) {
        table_set_text(t, row, COLUMN_NOTE, "wrong: other ids than the first rung");
        return;
    }
    table_set(t, row, COLUMN_MS, 4, ms->median, a);
    if (ms->n > 1) table_set(t, row, COLUMN_STD, 2, ms->std, a);
    table_set(t, row, COLUMN_SAMPLES, 0, ms->n, a);
    table_set(t, row, COLUMN_RATE, 4, x->rate * 1e-6, a);
    table_set(t, row, COLUMN_NS, 3, ms->median * 1e6 / (double)r->pieces, a);
    table_set_text(t, row, COLUMN_VERDICT, judge_name(&x->previous));
    set_speed(t, row, COLUMN_PREVIOUS, &x->previous, a);
    set_speed(t, row, COLUMN_FIRST, &x->first, a);
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

static void add_reasons(const struct bpe_run *r, int rows, struct sheet *s, struct arena *a)
{
    static const struct table_column of_why[] = {
        {"rung", "rung", "the encoder", false},
        {"why", "why it is as fast as it is", "from its times", false},
    };
    struct table *t = &sheet_add(s, NULL, of_why, COUNT_OF(of_why), rows, a)->table;
    for (int i = 0; i < rows; i++) {
        table_set_text(t, i, 0, r->result[i].rung->name);
        table_set_text(t, i, 1, r->result[i].wrong ? "" : why(&r->result[i], a));
    }
}

static void add_sources(const struct bpe_run *r, int rows, struct sheet *s, struct arena *a)
{
    static const struct table_column of_source[] = {
        {"rung", "rung", "the encoder", false},
        {"source", "source", "its file", false},
    };
    struct sheet_table *all = sheet_add(s, "sources", of_source, COUNT_OF(of_source), rows, a);
    all->drawn_only = true;
    all->chart = (struct sheet_chart){
        .kind = SHEET_TEXTS, .title = "sources", .label = {"rung"}, .labels = 1, .y = "source"};
    for (int i = 0; i < rows; i++) {
        int64_t bytes;
        table_set_text(&all->table, i, 0, r->result[i].rung->name);
        table_set_text(&all->table, i, 1, lab_source(r->result[i].rung, &bytes));
    }
}

void bpe_sheet(const struct bpe_run *r, const char *what, struct sheet *s, struct arena *a)
{
    char bytes[32], ids[32], pieces[32];
    int rows = 0;
    while (bpe_rungs[rows].name) rows++;
    *s = (struct sheet){.name = "lab-bpe"};
    s->title =
        arena_printf(a, "lab bpe, %s: How does text become tokens, and what makes it slow?", what);
    struct sheet_table *t = sheet_add(s, NULL, columns, COLUMNS, rows, a);
    for (int i = 0; i < rows; i++) set_result(&t->table, i, r, &r->result[i], a);
    t->chart = (struct sheet_chart){.kind = SHEET_BARS,
                                    .title = "bpe: time of the text",
                                    .label = {"rung"},
                                    .labels = 1,
                                    .y = "ms_median",
                                    .unit = SHEET_MS};
    add_reasons(r, rows, s, a);
    sheet_note(s, arena_printf(a, "%s bytes, %s pieces, %s ids; one core, %s",
                               str_thousands(bytes, r->options->bytes),
                               str_thousands(pieces, r->pieces), str_thousands(ids, r->ids),
                               r->options->warm ? "the caches keep the words of the call before"
                                                : "cold: every call begins with empty caches"));
    sheet_note(s, "every rung gives the ids of the first one, before and after the timing");
    add_sources(r, rows, s, a);
}
