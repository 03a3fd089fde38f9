/* strobe lab bpe: text to tokens, each rung with one more idea. */
#include "base/file.h"
#include "base/load.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/own.h"
#include "base/shell.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/device.h"
#include "data/source.h"
#include "data/tokenizers.h"
#include "lab/bpe/bpe.h"
#include "present/markup.h"
#include "present/sheet.h"
#include "present/table_form.h"
#include "text/stream.h"
#include "view/bpe_view.h"

#include <string.h>

enum { SAMPLES = 20, SAMPLES_MOST = 100000, TEXT_MOST = 1 << 26 };

struct words {
    const char *tokenizer, *from, *isa, *show, *save, *svg, *command;
    int64_t samples, limit;
    bool warm;
    struct table_form form;
};

static enum status show_rung(const char *name)
{
    struct str names = {0};
    int64_t bytes;
    for (int i = 0; bpe_rungs[i].name; i++) {
        str_printf(&names, "%s%s", i ? ", " : "", bpe_rungs[i].name);
        if (strcmp(bpe_rungs[i].name, name)) continue;
        const char *source = lab_source(&bpe_rungs[i], &bytes);
        names.len = 0;
        str_append_bytes(&names, source, bytes);
        command_print(&names);
        return ST_OK;
    }
    enum status st = fail(ST_USAGE, "bpe has no rung %s; it has %s", name, str_text(&names));
    str_release(&names);
    return st;
}

/* The text, followed by bytes that may be read; at most 64 MiB of it. */
static enum status read_text(const struct words *w, struct bpe_options *o, const char **ret_from,
                             struct arena *a)
{
    struct source_text t;
    if (w->from)
        TRY(source_file(&t, w->from, a));
    else
        TRY(source_shakespeare(&t, NULL, false, a));
    o->bytes = min_i64(t.bytes, TEXT_MOST);
    char *text = arena_alloc(a, o->bytes + STREAM_PADDING);
    memcpy(text, t.text, (size_t)o->bytes);
    o->text = text;
    *ret_from = w->from ? w->from : "Tiny Shakespeare";
    return ST_OK;
}

static enum status draw(const struct sheet *s, const char *path, struct arena *a)
{
    struct markup m = {0};
    sheet_print_bars(&s->table[0], &m, a);
    enum status st = own_write(path, OWN_PICTURE, markup_text(&m), markup_bytes(&m));
    markup_release(&m);
    return st;
}

static enum status finish(const struct bpe_run *r, const char *from, const struct words *w,
                          struct load *load, struct arena *a)
{
    struct sheet s;
    char words[LOAD_WORDS];
    double others = load_others(load);
    bpe_sheet(r, arena_printf(a, "%s, %s", from, w->tokenizer), &s, a);
    load_warn(others);
    if (load_words(others, words)) sheet_note(&s, arena_printf(a, "Warning: %s.", words));
    struct device d;
    TRY(device_of_word("cpu", &d));
    TRY(command_name_machine(&s, &d, w->command, a));
    enum status st = w->save ? sheet_write(&s, w->save) : ST_OK;
    if (st == ST_OK && w->svg) st = draw(&s, w->svg, a);
    if (w->form.csv) s.tables = 1;
    for (int i = 0; i < s.tables && !w->form.json; i++)
        if (s.table[i].drawn_only) s.tables = i;
    command_print_sheet(&s, &w->form);
    if (r->wrong)
        return fail(ST_NUMERIC, "%d rung%s gave other ids; the table says which", r->wrong,
                    r->wrong == 1 ? "" : "s");
    if (st == ST_OK && w->save)
        log_info("wrote %s; see it as a page with strobe report %s", w->save,
                 shell_word(w->save, a));
    return st;
}

static enum status run(const struct words *w, struct arena *a)
{
    struct tokenizer t;
    struct bpe_run r;
    struct load load = load_start();
    struct progress progress;
    const char *from = NULL;
    struct bpe_options o = {.tokenizer = &t,
                            .warm = w->warm,
                            .samples = (int)w->samples,
                            .limit_ms = 1e3 * (double)w->limit,
                            .each = progress_share,
                            .user = &progress};
    if (w->isa) TRY(isa_limit_word(w->isa));
    TRY(tokenizers_find(&t, w->tokenizer, a));
    TRY(read_text(w, &o, &from, a));
    progress_start(&progress, "lab bpe", 0, PROGRESS_WHOLE);
    enum status st = bpe_run(&o, &r, a);
    progress_end(&progress);
    return st == ST_OK ? finish(&r, from, w, &load, a) : st;
}

enum status cmd_lab_bpe(int argc, char **argv)
{
    struct words w = {.tokenizer = "gpt2", .samples = SAMPLES, .limit = 20};
    const struct opt options[] = {
        {"tokenizer", OPT_TEXT, &w.tokenizer, "NAME",
         "gpt2 (the default), or a folder with tokenizer.json or with vocab.json and merges.txt"},
        {"from", OPT_TEXT, &w.from, "FILE", "the text (Tiny Shakespeare), at most 64 MiB of it"},
        {"warm", OPT_FLAG, &w.warm, NULL, "the caches keep the words of the call before"},
        {"show", OPT_TEXT, &w.show, "RUNG", "print the file of a rung"},
        {"samples", OPT_INT, &w.samples, "N", "samples of each rung (20)"},
        {"limit", OPT_INT, &w.limit, "SECONDS", "for the timing of all rungs (20)"},
        {"isa", OPT_TEXT, &w.isa, "SET", "use this instruction set at most, such as avx2"},
        {"svg", OPT_TEXT, &w.svg, "FILE", "write the bars as a picture"},
        {"save", OPT_TEXT, &w.save, "FILE", "write the result as JSON, for strobe report"},
        TABLE_FORM_OPTIONS(&w.form),
        {0}};
    struct arena a = {0};
    w.command = command_text("lab bpe", argc, argv, &a);
    enum status st = opt_parse(options, &argc, argv, NULL);
    if (st == ST_OK && argc) st = fail(ST_USAGE, "lab bpe takes only options; found %s", argv[0]);
    if (st == ST_OK) st = table_form_check(&w.form);
    if (st == ST_OK && (w.samples < 1 || w.samples > SAMPLES_MOST || w.limit < 1))
        st = fail(ST_USAGE, "--samples is 1 to %d and --limit at least 1", SAMPLES_MOST);
    if (st == ST_OK) st = w.show ? show_rung(w.show) : run(&w, &a);
    arena_release(&a);
    return st;
}
