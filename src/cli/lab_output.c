#include "cli/lab_output.h"

#include "base/interrupt.h"
#include "base/own.h"
#include "base/shell.h"
#include "cli/command.h"
#include "present/markup.h"

#include <stdio.h>

enum status lab_output_check(const struct lab_output *o)
{
    TRY(table_form_check(&o->form));
    if ((o->svg && !*o->svg) || (o->save && !*o->save))
        return fail(ST_USAGE, "--svg and --save take the path of a file");
    enum status st = o->svg ? own_check_writable(o->svg, OWN_PICTURE) : ST_OK;
    if (st != ST_OK) return fail_in(st, "--svg");
    st = o->save ? own_check_writable(o->save, OWN_BENCH) : ST_OK;
    return st == ST_OK ? ST_OK : fail_in(st, "--save");
}

static enum status draw(const struct sheet *s, const char *path, struct arena *a)
{
    struct markup m = {0};
    if (s->table[0].chart.kind == SHEET_LINES)
        sheet_print_curves(&s->table[0], &m, a);
    else
        sheet_print_bars(&s->table[0], &m, a);
    enum status st = own_write(path, OWN_PICTURE, markup_text(&m), markup_bytes(&m));
    markup_release(&m);
    return st;
}

static enum status put(const struct lab_output *o, struct sheet *s, struct arena *a)
{
    struct failure lost;
    enum status st = o->save ? sheet_write(s, o->save) : ST_OK;
    if (st == ST_OK && o->svg) st = draw(s, o->svg, a);
    fail_keep(&lost);
    if (o->form.csv) s->tables = 1; /* the others are in the file */
    for (int i = 0; i < s->tables && !o->save && !o->form.json; i++)
        if (s->table[i].drawn_only) s->tables = i; /* there is neither a file nor a page */
    command_print_sheet(s, &o->form);
    fflush(stdout);
    if (st != ST_OK) fail_restore(&lost);
    return st;
}

static void name_files(const struct lab_output *o, struct arena *a)
{
    if (o->svg) log_info("picture: %s", o->svg);
    if (o->save)
        log_info("wrote %s; see it as a page with strobe report %s", o->save,
                 shell_word(o->save, a));
}

enum status lab_output_finish(const struct lab_output *o, const struct lab_origin *from,
                              struct sheet *s, const char *wrong, struct arena *a)
{
    char words[LOAD_WORDS];
    load_warn(from->others);
    if (load_words(from->others, words)) sheet_note(s, arena_printf(a, "Warning: %s.", words));
    TRY(command_name_machine(s, from->device, from->command, a));
    enum status kept = put(o, s, a);
    if (wrong) return fail(ST_NUMERIC, "%s", wrong);
    if (kept == ST_OK) name_files(o, a);
    return kept;
}

void lab_series_begin(struct lab_series *s, const char *name, int runs)
{
    *s = (struct lab_series){.runs = runs, .load = load_start()};
    progress_start(&s->progress, name, 0, PROGRESS_WHOLE);
}

bool lab_series_goes_on(const struct lab_series *s)
{
    return s->done < s->runs && s->status == ST_OK && !interrupt_noted();
}

void lab_series_add(struct lab_series *s, enum status st)
{
    s->done += st == ST_OK;
    s->status = st;
}

void lab_series_end(struct lab_series *s)
{
    if (s->status == ST_OK && interrupt_noted())
        s->status = fail(ST_INTERRUPTED, "stopped: the table has what was measured so far");
    fail_keep(&s->why);
    progress_end(&s->progress);
}

enum status lab_series_status(const struct lab_series *s, enum status finished)
{
    if (s->status == ST_OK) return finished;
    fail_restore(&s->why);
    return s->status;
}

void lab_series_share(void *user, double share, const char *what)
{
    struct lab_series *s = user;
    progress_share(&s->progress, (s->done + share) / s->runs, what);
}
