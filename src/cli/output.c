#include "cli/output.h"

#include "base/interrupt.h"
#include "base/own.h"
#include "base/shell.h"
#include "cli/command.h"

#include <stdio.h>

static enum status check_file(const char *option, const char *path, enum own_file kind)
{
    enum status st = path ? own_check_writable(path, kind) : ST_OK;
    return st == ST_OK ? ST_OK : fail_in(st, "%s", option);
}

enum status output_check(const struct output *o)
{
    TRY(table_form_check(&o->form));
    if ((o->svg && !*o->svg) || (o->save && !*o->save))
        return fail(ST_USAGE, "--svg and --save take the path of a file");
    TRY(check_file("--svg", o->svg, OWN_PICTURE));
    return check_file("--save", o->save, OWN_BENCH);
}

enum status effort_read(const struct effort *e, int *ret_samples, double *ret_limit_ms,
                        bool *ret_go_on)
{
    bool open = ret_go_on && e->samples == EFFORT_OPEN;
    int64_t samples = open ? EFFORT_SAMPLES : e->samples;
    if (samples < 1 || samples > e->samples_most || e->limit < e->limit_least ||
        e->limit > e->limit_most)
        return fail(ST_USAGE, "--%s must be 1 to %lld, and --limit %lld to %lld", e->option,
                    (long long)e->samples_most, (long long)e->limit_least,
                    (long long)e->limit_most);
    *ret_samples = (int)samples;
    *ret_limit_ms = 1e3 * (double)e->limit;
    if (ret_go_on) *ret_go_on = open;
    return ST_OK;
}

/* --- measuring -------------------------------------------------------------------------------- */

void outcome_begin(struct outcome *x, const char *name, int runs, const struct device *d)
{
    *x = (struct outcome){.runs = runs, .load = load_start(), .device = d};
    progress_start(&x->progress, name, 0, PROGRESS_WHOLE);
}

bool outcome_goes_on(const struct outcome *x)
{
    return x->done < x->runs && x->status == ST_OK && !interrupt_noted();
}

void outcome_add(struct outcome *x, enum status st)
{
    x->done += st == ST_OK;
    x->status = st;
}

bool outcome_end(struct outcome *x)
{
    if (x->status == ST_OK && interrupt_noted())
        x->status = fail(ST_INTERRUPTED, "stopped: the table has what was measured so far");
    fail_keep(&x->why);
    progress_end(&x->progress);
    x->others = load_others(&x->load);
    return x->done > 0;
}

void outcome_share(void *user, double share, const char *what)
{
    struct outcome *x = user;
    progress_share(&x->progress, (x->done + share) / x->runs, what);
}

/* --- the result ------------------------------------------------------------------------------- */

enum status output_draw(const char *path, struct markup *m, bool say)
{
    enum status st = own_write(path, OWN_PICTURE, markup_text(m), markup_bytes(m));
    markup_release(m);
    if (st == ST_OK && say) log_info("picture: %s", path);
    return st;
}

void output_say_written(const char *path, const char *seen_by, struct arena *a)
{
    log_info("wrote %s; see it as a page with strobe report %s", path, shell_word(seen_by, a));
}

enum status output_conclude(const struct table *t, bool stopped)
{
    if (stopped) return fail(ST_INTERRUPTED, "stopped: the table has the cells measured so far");
    const char *why = table_why_empty(t);
    if (!why) return ST_OK;
    return fail(ST_UNSUPPORTED, "nothing was measured; reason of the first cell: %s", why);
}

enum status output_origin(struct sheet *s, const struct device *d, const char *command,
                          double others, struct arena *a)
{
    char words[LOAD_WORDS];
    load_warn(others);
    if (load_words(others, words)) sheet_note(s, arena_printf(a, "Warning: %s.", words));
    return command_name_machine(s, d, command, a);
}

static enum status draw(struct outcome *x, const char *path, struct arena *a)
{
    const struct sheet_table *first = &x->sheet.table[0];
    if (!markup_bytes(&x->picture) && first->chart.kind == SHEET_LINES)
        sheet_print_curves(first, &x->picture, a);
    else if (!markup_bytes(&x->picture))
        sheet_print_bars(first, &x->picture, a);
    return output_draw(path, &x->picture, false);
}

static void print(struct outcome *x, const struct output *o)
{
    const struct table_form *f = &o->form;
    struct sheet *s = &x->sheet;
    bool plain = !f->json && !f->csv && !f->markdown, pictured = x->text.len > 0;
    if (f->csv) s->tables = 1; /* the others are in the file */
    for (int i = 0; i < s->tables && (!o->save || pictured) && !f->json; i++)
        if (s->table[i].drawn_only) s->tables = i; /* there is neither a file nor a page */
    command_print_sheet(s, f);
    if (plain && pictured) printf("\n%s", str_text(&x->text));
    fflush(stdout);
}

/* Writes the files and prints; the failure is that of a file. */
static enum status keep(struct outcome *x, const struct output *o, struct arena *a)
{
    struct failure lost;
    enum status st = o->save ? sheet_write(&x->sheet, o->save) : ST_OK;
    if (st == ST_OK && o->svg) st = draw(x, o->svg, a);
    fail_keep(&lost);
    print(x, o);
    if (x->wrong) return fail(ST_NUMERIC, "%s", x->wrong);
    if (st != ST_OK) {
        fail_restore(&lost);
        return st;
    }
    if (o->svg) log_info("picture: %s", o->svg);
    if (o->save) output_say_written(o->save, o->save, a);
    return ST_OK;
}

enum status outcome_finish(struct outcome *x, const struct output *o, struct arena *a)
{
    enum status st = ST_OK;
    if (x->done) st = output_origin(&x->sheet, x->device, o->command, x->others, a);
    if (x->done && st == ST_OK) st = keep(x, o, a);
    markup_release(&x->picture);
    str_release(&x->text);
    if (x->status == ST_OK) return st;
    fail_restore(&x->why);
    return x->status;
}
