/* strobe lab memory: the memory hierarchy of a CPU or a GPU, measured and drawn. */
#include "base/load.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/own.h"
#include "base/shell.h"
#include "base/str.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/device.h"
#include "present/markup.h"
#include "present/table_form.h"
#include "view/lab_memory_view.h"

#include <math.h>

enum { SAMPLES = 9, SAMPLES_MOST = 1000, LIMIT = 20, LIMIT_MOST = 100000 };
static const int64_t LARGEST_LEAST = 64 << 10, LARGEST_MOST = INT64_C(1) << 34;

struct words {
    const char *device, *isa, *largest, *save, *svg, *command;
    int64_t threads, samples, limit;
    struct table_form form;
};

static enum status check_file(const char *path, const char *option, enum own_file kind)
{
    if (!path) return ST_OK;
    if (!*path) return fail(ST_USAGE, "--svg and --save take the path of a file");
    enum status st = own_check_writable(path, kind);
    return st == ST_OK ? ST_OK : fail_in(st, "%s", option);
}

static enum status prepare(const struct words *w, struct memory_options *o)
{
    TRY(table_form_check(&w->form));
    if (w->threads < 0 || w->threads > 4096) return fail(ST_USAGE, "--threads must be 0 to 4096");
    if (w->samples < 1 || w->samples > SAMPLES_MOST || w->limit < 1 || w->limit > LIMIT_MOST)
        return fail(ST_USAGE, "--samples must be 1 to %d, and --limit 1 to %d", SAMPLES_MOST,
                    LIMIT_MOST);
    if (w->largest && (!str_read_bytes(w->largest, &o->largest) || o->largest < LARGEST_LEAST ||
                       o->largest > LARGEST_MOST))
        return fail(ST_USAGE, "--largest takes a size from 64KiB to 16GiB, as in 256MiB; found %s",
                    w->largest);
    TRY(check_file(w->svg, "--svg", OWN_PICTURE));
    TRY(check_file(w->save, "--save", OWN_BENCH));
    if (w->isa) TRY(isa_limit_word(w->isa));
    TRY(device_of_word(w->device, &o->device));
    threads_set(w->threads);
    o->samples = (int)w->samples;
    o->limit_ms = 1e3 * (double)w->limit;
    return ST_OK;
}

static enum status draw(const struct memory_run *r, const char *path, struct arena *a)
{
    struct markup m = {0};
    lab_memory_svg(r, &m, a);
    enum status st = own_write(path, OWN_PICTURE, markup_text(&m), markup_bytes(&m));
    markup_release(&m);
    return st;
}

static void print(const struct memory_run *r, struct sheet *s, const struct words *w,
                  struct arena *a)
{
    const struct table_form *f = &w->form;
    struct str picture = {0};
    if (f->csv) s->tables = 1; /* the others are in the file */
    for (int i = 0; i < s->tables && !f->json; i++)
        if (s->table[i].drawn_only) s->tables = i; /* the picture shows them */
    command_print_sheet(s, f);
    if (f->json || f->csv || f->markdown) return;
    str_append(&picture, "\n");
    lab_memory_text(r, &picture, a);
    command_print(&picture);
}

/* Why the run tells less than one with the defaults on an idle machine. */
static enum memory_doubt doubt_of(const struct memory_run *r, const struct words *w, double others)
{
    char words[LOAD_WORDS];
    if (r->stopped || w->largest || w->limit < LIMIT || w->samples < SAMPLES)
        return MEMORY_RESTRICTED;
    return !r->gpu && load_words(others, words) ? MEMORY_BUSY : MEMORY_WHOLE;
}

static void keep(const struct machine *m, const struct memory_run *r, const struct words *w,
                 double others, struct arena *a)
{
    enum memory_doubt doubt = doubt_of(r, w, others);
    const char *better;
    if (memory_keep(m, r, doubt, &better, a) != ST_OK)
        log_warning("strobe machine and strobe info will not show this: %s", fail_message());
    else if (better)
        log_info("strobe machine and strobe info still show the run of %.10s, because %s", better,
                 doubt == MEMORY_BUSY ? "other programs were busy in this one"
                                      : "this one was shorter, or had fewer sizes or samples");
}

static enum status finish(const struct memory_run *r, const struct words *w, struct load *load,
                          struct arena *a)
{
    struct sheet s;
    struct machine m;
    char words[LOAD_WORDS];
    double others = load_others(load);
    lab_memory_sheet(r, &s, a);
    load_warn(others);
    if (load_words(others, words)) sheet_note(&s, arena_printf(a, "Warning: %s.", words));
    TRY(machine_identify(&m, &r->options->device, a));
    TRY(command_name_machine(&s, &r->options->device, w->command, a));
    keep(&m, r, w, others, a);
    enum status st = w->save ? sheet_write(&s, w->save) : ST_OK;
    if (st == ST_OK && w->svg) st = draw(r, w->svg, a);
    print(r, &s, w, a);
    if (st != ST_OK) return st;
    if (w->svg) log_info("picture: %s", w->svg);
    if (w->save)
        log_info("wrote %s; see it as a page with strobe report %s", w->save,
                 shell_word(w->save, a));
    return ST_OK;
}

static enum status run(const struct words *w, struct arena *a)
{
    struct memory_options o = {0};
    struct memory_run *r = ARENA_NEW(a, struct memory_run, 1);
    struct progress progress;
    TRY(prepare(w, &o));
    struct load load = load_start();
    o.each = progress_share;
    o.user = &progress;
    progress_start(&progress, "lab memory", 0, PROGRESS_WHOLE);
    enum status st = memory_measure(&o, r, a);
    progress_end(&progress);
    return st == ST_OK ? finish(r, w, &load, a) : st;
}

enum status cmd_lab_memory(int argc, char **argv)
{
    struct words w = {.samples = SAMPLES, .limit = LIMIT};
    const struct opt options[] = {
        DEVICE_OPTION(&w.device),
        {"largest", OPT_TEXT, &w.largest, "SIZE",
         "the largest working set, as in 256MiB (4 times the last cache of a CPU, 8 times that of "
         "a GPU, at most 1 GiB)"},
        {"threads", OPT_INT, &w.threads, "N",
         "threads of a CPU (default: all that this process may use)"},
        {"isa", OPT_TEXT, &w.isa, "SET",
         "widest instruction set of a CPU: avx512, avx2, sse2, neon or plain"},
        {"samples", OPT_INT, &w.samples, "N", "timings of each point, at most (9)"},
        {"limit", OPT_INT, &w.limit, "SECONDS", "time for all measurements, about (20)"},
        {"svg", OPT_TEXT, &w.svg, "FILE", "also write the curves as a picture"},
        {"save", OPT_TEXT, &w.save, "FILE", "write the result, for strobe report"},
        TABLE_FORM_OPTIONS(&w.form),
        {0},
    };
    struct arena a = {0};
    w.command = command_text("lab memory", argc, argv, &a);
    enum status st = opt_parse(options, &argc, argv, NULL);
    if (st == ST_OK && argc)
        st = fail(ST_USAGE, "lab memory takes only options; found %s", argv[0]);
    if (st == ST_OK) st = run(&w, &a);
    arena_release(&a);
    return st;
}
