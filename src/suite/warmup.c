/* cs336-warmup: the same cells after different numbers of warm-up steps, each in a separate
 * process, as if a script were run again: one-time work of a process (threads, handles and
 * kernels of libraries) is in the first steps of every row. */
#include "base/file.h"
#include "present/table_cells.h"
#include "suite/others.h"
#include "suite/parts.h"

#include <stdio.h>
#include <string.h>

enum { WORDS_MOST = 64 };
static const char warmups[] = "0,1,2,5", phases[] = "forward,backward,step";

struct part {
    int warmup;
    struct sheet sheet;
};

struct collecting {
    const struct suite_request *request;
    struct part *part; /* one for each process */
    int parts;
    struct arena *a;
};

static enum status run_part(struct collecting *x, const char *size, int warmup)
{
    const struct suite_request *r = x->request;
    char *word[WORDS_MOST];
    int words = 0;
    struct arena *a = x->a;
    struct part *part = &x->part[x->parts++];
    char *path = arena_printf(a, "%s/%s-%d.json", r->out_dir, size, warmup);
    if (r->words > WORDS_MOST - 16) return fail(ST_USAGE, "more than %d keys", WORDS_MOST - 16);
    word[words++] = "bench";
    word[words++] = "--suite=cs336-e2e";
    word[words++] = arena_printf(a, "--size=%s", size);
    word[words++] = arena_printf(a, "--warmup=%d", warmup);
    word[words++] = arena_printf(a, "--phase=%s", r->phase ? r->phase : phases);
    word[words++] = arena_printf(a, "--save=%s", path);
    if (r->steps) word[words++] = arena_printf(a, "--steps=%lld", (long long)r->steps);
    if (r->limit) word[words++] = arena_printf(a, "--mem-limit=%lldB", (long long)r->limit);
    if (r->full) word[words++] = "--full";
    for (int i = 0; i < r->words; i++) word[words++] = r->word[i];
    part->warmup = warmup;
    remove(path); /* left by a call that was killed */
    enum status st = r->command(r->user, word, words, true);
    if (st == ST_INTERRUPTED) { /* its file may be incomplete */
        remove(path);
        x->parts--;
        return ST_OK;
    }
    if (st != ST_OK && !file_exists(path))
        return st; /* if no cell ran, it fails, but its table has the reasons */
    TRY(sheet_read(path, a, &part->sheet));
    remove(path);
    if (part->sheet.tables != 1) return fail(ST_FORMAT, "%s has no table", path);
    return ST_OK;
}

/* The columns of a part, with the warm-up after the first one. */
static const struct table_column *columns_of(const struct table *t, struct arena *a)
{
    struct table_column *column = ARENA_NEW(a, struct table_column, t->columns + 1);
    column[0] = t->column[0];
    column[1] = (struct table_column){"warmup", "warm-up", "steps before the measured ones", true};
    memcpy(&column[2], &t->column[1], (size_t)(t->columns - 1) * sizeof *column);
    return column;
}

static void join(const struct collecting *x, struct sheet *ret)
{
    const struct sheet_table *first = &x->part[0].sheet.table[0];
    int rows = 0, row = 0, columns = first->table.columns + 1;
    for (int i = 0; i < x->parts; i++) rows += x->part[i].sheet.table[0].table.rows;
    struct sheet_table *t =
        sheet_add(ret, NULL, columns_of(&first->table, x->a), columns, rows, x->a);
    for (int i = 0; i < x->parts; i++) {
        const struct table *from = &x->part[i].sheet.table[0].table;
        for (int k = 0; k < from->rows; k++, row++) {
            *table_at(&t->table, row, 0) = *table_at(from, k, 0);
            table_set(&t->table, row, 1, 0, x->part[i].warmup, x->a);
            for (int c = 1; c < from->columns; c++)
                *table_at(&t->table, row, c + 1) = *table_at(from, k, c);
        }
    }
    sheet_bars(t, first->chart.title, first->chart.y, first->chart.spread,
               (const char *[SHEET_LABELS]){"config", "warmup", "phase"});
}

enum status suite_run_warmup(const struct suite_request *r, struct sheet *ret, struct arena *a)
{
    static const char *const none[] = {NULL};
    const struct suite_size *size;
    struct bench_grid g = {0};
    struct collecting x = {.request = r, .a = a};
    bool small;
    int sizes;
    TRY(suite_check_lists(r, none));
    TRY(suite_is_small(r, &small));
    TRY(suite_sizes(r, small ? cs336_small_sizes : cs336_sizes, &size, &sizes, a));
    TRY(bench_read_warmups(&g, r->warmup ? r->warmup : warmups));
    TRY(file_make_dirs(r->out_dir));
    x.part = ARENA_NEW(a, struct part, sizes * g.warmups);
    for (int i = 0; i < sizes; i++)
        for (int k = 0; k < g.warmups && !suite_stopped(); k++) {
            suite_show(r, (double)x.parts / (sizes * g.warmups),
                       arena_printf(a, "%s warm-up %d", size[i].name, g.warmup[k]));
            TRY(run_part(&x, size[i].name, g.warmup[k]));
        }
    TRY(suite_check_stopped(x.parts > 0));
    join(&x, ret);
    sheet_note(
        ret,
        "Each model and warm-up ran in a separate process. Its lines were interleaved, so one-time "
        "work of the process is in the first step of the first line.");
    if (small) suite_say_small(ret, r, cs336_smaller, a);
    return ST_OK;
}
