#include "cli/bench_sheet.h"

#include "base/interrupt.h"
#include "base/load.h"
#include "base/log.h"
#include "base/own.h"
#include "base/shell.h"
#include "cli/child.h"
#include "cli/command.h"
#include "cli/device.h"
#include "cli/planned.h"
#include "cli/version.h"
#include "suite/grid.h"
#include "view/ceilings.h"

#include <stdio.h>
#include <string.h>

enum { GRID_STEPS = 10, ITERS_MOST = 1000000000, ROUNDS_MOST = 1000 };

bool bench_words_are_grid(const struct bench_words *w)
{
    int configs = 0;
    bool lists = false;
    for (int i = 0; i < w->words; i++) {
        configs += !config_is_override(w->word[i]);
        lists |= config_is_override(w->word[i]) && bench_is_list(w->word[i]);
    }
    return configs > 1 || lists || w->phase || w->limit || w->order || w->save || w->wide ||
           w->each_step || (w->warmup && strchr(w->warmup, ','));
}

/* --- the request ------------------------------------------------------------------------------ */

static enum status run_command(void *, char *const *word, int words, bool quiet)
{
    struct arena a = {0};
    char **all = ARENA_NEW(&a, char *, words + 2);
    all[0] = "strobe";
    for (int i = 0; i < words; i++) all[1 + i] = word[i];
    enum status st = child_run(all, word[0], quiet);
    arena_release(&a);
    return st;
}

static enum status find_order(const char *word, enum bench_order *ret)
{
    *ret = BENCH_AUTO;
    if (!word) return ST_OK;
    for (int i = 0; i < BENCH_ORDERS; i++) {
        *ret = (enum bench_order)i;
        if (!strcmp(word, bench_order_name(*ret))) return ST_OK;
    }
    return fail(ST_USAGE, "--order must be auto, rounds, twice or once; found %s", word);
}

static enum status make_request(const struct bench_words *w, struct suite_request *r)
{
    *r = (struct suite_request){.size = w->size, .warmup = w->warmup, .phase = w->phase};
    r->steps = w->steps > 0 ? w->steps : 0;
    r->iters = w->iters;
    r->full = w->full;
    r->wide = w->wide;
    r->each_step = w->each_step;
    r->rounds = w->rounds;
    r->each = progress_share;
    r->command = run_command;
    TRY(command_read_size("mem-limit", w->limit, &r->limit));
    if (w->iters < 0 || w->iters > ITERS_MOST)
        return fail(ST_USAGE, "--iters must be 1 to %d", ITERS_MOST);
    if (w->rounds < 0 || w->rounds > ROUNDS_MOST)
        return fail(ST_USAGE, "--rounds must be 1 to %d", ROUNDS_MOST);
    return find_order(w->order, &r->order);
}

/* The value of out_dir on the command line; NULL: not given. */
static const char *out_dir_of(const struct bench_words *w)
{
    static const char key[] = "out_dir=";
    const char *found = NULL;
    for (int i = 0; i < w->words; i++) {
        const char *word = w->word[i] + strspn(w->word[i], "-");
        if (config_is_override(w->word[i]) && !strncmp(word, key, strlen(key)))
            found = word + strlen(key);
    }
    return found;
}

/* --- a grid ----------------------------------------------------------------------------------- */

/* "configs/gpt2_124m.conf" -> "gpt2_124m" */
static const char *stem_of(const char *path, struct arena *a)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return dot && dot != name ? arena_printf(a, "%.*s", (int)(dot - name), name) : name;
}

static enum status add_subject(struct bench_grid *g, const struct bench_words *w, char *path,
                               struct arena *a)
{
    char **word = ARENA_NEW(a, char *, w->words + 1);
    int words = 0;
    struct bench_subject *s = &g->subject[g->subjects++];
    word[words++] = path;
    for (int i = 0; i < w->words; i++)
        if (config_is_override(w->word[i]) && !bench_is_list(w->word[i]))
            word[words++] = w->word[i];
    s->name = stem_of(path, a);
    TRY(command_read_config(&s->config, words, word, true, a));
    return planned_vocabulary(&s->config, w->vocab, &s->vocab, a);
}

static enum status plan_vocabulary(const struct bench_grid *g, const struct config *c, int64_t *ret,
                                   struct arena *a)
{
    return planned_vocabulary(c, g->vocab, ret, a);
}

static enum status make_grid(const struct bench_words *w, struct bench_grid *g, struct arena *a)
{
    *g = (struct bench_grid){.steps = w->steps > 0 ? (int)w->steps : GRID_STEPS,
                             .vocabulary = plan_vocabulary,
                             .vocab = w->vocab};
    g->subject = ARENA_NEW(a, struct bench_subject, w->words + 1);
    for (int i = 0; i < w->words; i++) {
        if (!config_is_override(w->word[i]))
            TRY(add_subject(g, w, w->word[i], a));
        else if (bench_is_list(w->word[i]))
            TRY(bench_add_axis(g, w->word[i], a));
    }
    if (!g->subjects)
        return fail(
            ST_USAGE,
            "no configuration given; name one, for example configs/shakespeare_char_cpu.conf");
    TRY(bench_read_warmups(g, w->warmup ? w->warmup : "5"));
    return bench_read_lines(&g->lines, w->phase ? w->phase : "forward,backward,update,step");
}

/* --- the sheet -------------------------------------------------------------------------------- */

/* The path of the result; NULL: it is not written. */
static const char *path_of(const struct bench_words *w, const char *folder, struct arena *a)
{
    if (w->save) return w->save;
    return w->form.json && !out_dir_of(w) ? NULL : arena_printf(a, "%s/bench.json", folder);
}

/* Checks that the result can be written before anything is measured. */
static enum status check_path(const struct bench_words *w, const char *folder, struct arena *a)
{
    const char *path = path_of(w, folder, a);
    if (!path) return ST_OK;
    if (!w->save) TRY(file_make_dirs(folder));
    return own_check_writable(path, OWN_BENCH);
}

static enum status keep(const struct sheet *s, const struct bench_words *w, const char *folder,
                        struct arena *a)
{
    const char *path = path_of(w, folder, a);
    if (!path) return ST_OK;
    TRY(sheet_write(s, path));
    log_info("wrote %s; see it as a page with strobe report %s", path,
             shell_word(w->save ? path : folder, a));
    return ST_OK;
}

static enum status check_suite_words(const struct bench_words *w)
{
    for (int i = 0; i < w->words; i++)
        if (!config_is_override(w->word[i]))
            return fail(ST_USAGE, "a suite has fixed configurations; leave %s out", w->word[i]);
    if (w->vocab) return fail(ST_USAGE, "a suite has a fixed vocabulary; leave --vocab out");
    return ST_OK;
}

/* What is measured: a suite, or a grid if `suite` is NULL. */
struct subject {
    const struct suite *suite;
    struct bench_grid grid;
    struct suite_request request;
    struct device device;
};

static enum status run(const struct subject *x, struct sheet *s, struct arena *a)
{
    struct progress progress = {0};
    struct suite_request r = x->request;
    const char *name = x->suite ? x->suite->name : "bench";
    *s = (struct sheet){.name = name};
    r.user = &progress;
    progress_start(&progress, name, 0, PROGRESS_WHOLE);
    enum status st = x->suite ? suite_run(x->suite, &r, s, a) : grid_run(&x->grid, &r, s, a);
    progress_end(&progress);
    return st;
}

/* After Ctrl-C the table has the cells measured so far, and a note says so. */
static enum status measure(const struct subject *x, const struct bench_words *w, struct arena *a)
{
    static const char stopped[] = "stopped: the table has the cells measured so far";
    const char *folder = x->request.out_dir;
    char words[LOAD_WORDS];
    struct load load = load_start();
    struct sheet s;
    TRY(run(x, &s, a));
    double others = load_others(&load);
    load_warn(others);
    if (load_words(others, words)) sheet_note(&s, arena_printf(a, "Warning: %s.", words));
    bool whole = !interrupt_noted();
    if (!whole) sheet_note(&s, "Stopped by Ctrl-C: these are the cells measured so far.");
    TRY(command_name_machine(&s, &x->device, w->command, a));
    command_print_sheet(&s, &w->form);
    fflush(stdout);
    TRY(keep(&s, w, folder, a));
    if (!whole) return fail(ST_INTERRUPTED, stopped);
    const char *why = table_why_empty(&s.table[0].table);
    if (why) return fail(ST_UNSUPPORTED, "nothing was measured; reason of the first cell: %s", why);
    char *report[] = {"report", arena_strdup(a, folder)};
    bool runs = x->suite && x->suite->runs;
    return runs ? run_command(NULL, report, COUNT_OF(report), true) : ST_OK;
}

enum status bench_sheet_run(const struct bench_words *w, struct arena *a)
{
    struct subject x = {0};
    struct suite_request *r = &x.request;
    struct config c;
    struct machine m;
    const char *folder = out_dir_of(w);
    TRY(table_form_check(&w->form));
    TRY(make_request(w, r));
    if (w->suite) {
        TRY(suite_find(w->suite, &x.suite));
        TRY(check_suite_words(w));
        TRY(suite_check_options(x.suite, r));
        r->word = w->word;
        r->words = w->words;
        config_init(&c);
        for (int i = 0; i < w->words; i++)
            if (!bench_is_list(w->word[i])) TRY(config_set(&c, w->word[i], a));
    } else {
        TRY(make_grid(w, &x.grid, a));
        c = x.grid.subject[0].config;
    }
    if (!folder) folder = arena_printf(a, "runs/%s", x.suite ? x.suite->name : "bench");
    r->out_dir = folder;
    TRY(device_prepare(&c, &x.device));
    TRY(check_path(w, folder, a));
    if (x.suite && x.suite->machine) {
        TRY(ceilings_get(&m, &x.device, a));
        r->machine = &m;
    }
    return measure(&x, w, a);
}

enum status bench_sheet_list(const struct table_form *f, struct arena *a)
{
    static const struct table_column columns[] = {
        {"suite", "suite", "name", false},
        {"what", "what it measures", "in one sentence", false},
        {"text", "what it reproduces", "a problem of an assignment, or a post", false},
    };
    struct sheet s = {.name = "suites"};
    int n = 0;
    while (suites[n].name) n++;
    struct table *t = &sheet_add(&s, NULL, columns, COUNT_OF(columns), n, a)->table;
    for (int i = 0; i < n; i++) {
        table_set_text(t, i, 0, suites[i].name);
        table_set_text(t, i, 1, suites[i].title);
        table_set_text(t, i, 2, suites[i].text);
    }
    command_print_sheet(&s, f);
    return ST_OK;
}
