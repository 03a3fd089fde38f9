/* strobe bench CONFIG: a training step next to its own matmuls, interleaved, with spread.
 * strobe bench CONFIG... --phase=...: a grid of cells.
 * strobe bench --suite=NAME: a ready-made experiment.
 * strobe bench kernels|attention: parts of a step alone. */
#include "base/interrupt.h"
#include "base/own.h"
#include "base/str.h"
#include "base/threads.h"
#include "cli/child.h"
#include "cli/command.h"
#include "cli/device.h"
#include "cli/output.h"
#include "cli/planned.h"
#include "engine/device.h"
#include "suite/grid.h"
#include "view/bench_beside.h"
#include "view/ceilings.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct command parts[] = {
    {"bench kernels", cmd_bench_kernels, "[CONFIG|RUN] [--key=value ...]", "time every kernel that accepts a call of a training step, and show which one is selected",
     NULL, "strobe bench kernels --op=attention --block_size=256"},
    {"bench attention", cmd_bench_attention, "[--T=64,128,...]", "time flash attention and unfused attention over lengths, head sizes and masks",
     NULL, "strobe bench attention --T=256,1024 --head_size=64"},
};
/* clang-format on */

enum { STEPS_MOST = 1000000, ITERS_MOST = 1000000000, ROUNDS_MOST = 1000 };
enum { STEPS = 50, GRID_STEPS = 10, NOT_GIVEN = -1 };
static const char first_phases[] = "forward,backward,update,step", first_warmup[] = "5";

struct words {
    const char *suite; /* NULL: not a suite */
    const char *warmup, *phase, *limit, *order, *size;
    int64_t steps, iters, vocab; /* -1, 0: not given */
    int64_t rounds;              /* 0: not given */
    bool full, wide, each_step;
    struct output output;
    char **word; /* configurations and overrides */
    int words;
};

static const char *name_of(const struct command *part)
{
    return part->name + strlen("bench ");
}

/* Refuses a word that is not a file and looks like a misspelled subcommand. */
static enum status check_word(const char *word)
{
    enum { NEAR = 2 };
    for (int i = 0; i < COUNT_OF(parts); i++)
        if (str_distance(word, name_of(&parts[i])) <= NEAR && !file_exists(word))
            return fail(ST_USAGE, "bench has no subcommand %s; did you mean %s?", word,
                        name_of(&parts[i]));
    return ST_OK;
}

/* Whether the words describe a grid of cells and not one configuration. */
static bool is_grid(const struct words *w)
{
    int configs = 0;
    bool lists = false;
    for (int i = 0; i < w->words; i++) {
        configs += !config_is_override(w->word[i]);
        lists |= config_is_override(w->word[i]) && bench_is_list(w->word[i]);
    }
    return configs > 1 || lists || w->phase || w->limit || w->order || w->output.save || w->wide ||
           w->each_step || (w->warmup && strchr(w->warmup, ','));
}

/* --- the request ------------------------------------------------------------------------------ */

static enum status run_child(void *, char *const *word, int words, bool quiet)
{
    struct arena a = {0};
    char **all = ARENA_NEW(&a, char *, words + 2);
    all[0] = "strobe";
    for (int i = 0; i < words; i++) all[1 + i] = word[i];
    enum status st = job_run(&(struct job){all, word[0]}, quiet);
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

static enum status make_request(const struct words *w, struct suite_request *r)
{
    *r = (struct suite_request){.size = w->size, .warmup = w->warmup, .phase = w->phase};
    r->steps = w->steps > 0 ? w->steps : 0;
    r->iters = w->iters;
    r->full = w->full;
    r->wide = w->wide;
    r->each_step = w->each_step;
    r->rounds = w->rounds;
    r->each = progress_share;
    r->command = run_child;
    TRY(command_read_size("mem-limit", w->limit, &r->limit));
    if (w->iters < 0 || w->iters > ITERS_MOST)
        return fail(ST_USAGE, "--iters must be 1 to %d", ITERS_MOST);
    if (w->rounds < 0 || w->rounds > ROUNDS_MOST)
        return fail(ST_USAGE, "--rounds must be 1 to %d", ROUNDS_MOST);
    return find_order(w->order, &r->order);
}

/* The value of out_dir on the command line; NULL: not given. */
static const char *out_dir_of(const struct words *w)
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

static enum status add_subject(struct bench_grid *g, const struct words *w, char *path,
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

static enum status make_grid(const struct words *w, struct bench_grid *g, struct arena *a)
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
    TRY(bench_read_warmups(g, w->warmup ? w->warmup : first_warmup));
    return bench_read_lines(&g->lines, w->phase ? w->phase : first_phases);
}

/* --- the sheet -------------------------------------------------------------------------------- */

/* The path of the result; NULL: it is not written. */
static const char *path_of(const struct words *w, const char *folder, struct arena *a)
{
    if (w->output.save) return w->output.save;
    return w->output.form.json && !out_dir_of(w) ? NULL : arena_printf(a, "%s/bench.json", folder);
}

/* Checks that the result can be written before anything is measured. */
static enum status check_path(const struct words *w, const char *folder, struct arena *a)
{
    const char *path = path_of(w, folder, a);
    if (!path) return ST_OK;
    if (!w->output.save) TRY(file_make_dirs(folder));
    return own_check_writable(path, OWN_BENCH);
}

static enum status keep(const struct sheet *s, const struct words *w, const char *folder,
                        struct arena *a)
{
    const char *path = path_of(w, folder, a);
    if (!path) return ST_OK;
    TRY(sheet_write(s, path));
    output_say_written(path, w->output.save ? path : folder, a);
    return ST_OK;
}

static enum status check_suite_words(const struct words *w)
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

static enum status run_subject(const struct subject *x, struct sheet *s, struct arena *a)
{
    struct progress progress = {0};
    struct suite_request r = x->request;
    *s = (struct sheet){.name = x->suite ? x->suite->name : "bench"};
    r.user = &progress;
    progress_start(&progress, s->name, 0, PROGRESS_WHOLE);
    enum status st = x->suite ? suite_run(x->suite, &r, s, a) : grid_run(&x->grid, &r, s, a);
    progress_end(&progress);
    return st;
}

/* After Ctrl-C the table has the cells measured so far, and a note says so. */
static enum status measure(const struct subject *x, const struct words *w, struct arena *a)
{
    const char *folder = x->request.out_dir;
    struct load load = load_start();
    struct sheet s;
    TRY(run_subject(x, &s, a));
    bool whole = !interrupt_noted();
    if (!whole) sheet_note(&s, "Stopped by Ctrl-C: these are the cells measured so far.");
    TRY(output_origin(&s, &x->device, w->output.command, load_others(&load), a));
    command_print_sheet(&s, &w->output.form);
    fflush(stdout);
    TRY(keep(&s, w, folder, a));
    TRY(output_conclude(&s.table[0].table, !whole));
    char *report[] = {"report", arena_strdup(a, folder)};
    bool runs = x->suite && x->suite->runs;
    return runs ? run_child(NULL, report, COUNT_OF(report), true) : ST_OK;
}

static enum status run_sheet(const struct words *w, struct arena *a)
{
    struct subject x = {0};
    struct suite_request *r = &x.request;
    struct config c;
    struct machine m;
    const char *folder = out_dir_of(w);
    TRY(table_form_check(&w->output.form));
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

static enum status list_suites(const struct table_form *f, struct arena *a)
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

/* --- the command ------------------------------------------------------------------------------ */

/* One configuration and no list of values: a step and its matmuls alone. */
static enum status run_step(const struct words *w, struct arena *a)
{
    int64_t vocab, steps = w->steps > 0 ? w->steps : STEPS;
    struct bench_grid g = {0};
    struct config c;
    TRY(bench_read_warmups(&g, w->warmup ? w->warmup : first_warmup));
    TRY(command_read_config(&c, w->words, w->word, true, a));
    TRY(model_check(&c));
    TRY(device_choose(&c, NULL, true));
    threads_set(c.plan.threads);
    TRY(planned_vocabulary(&c, w->vocab, &vocab, a));
    return bench_step_view(&c, vocab, g.warmup[0], (int)steps, w->output.form.json, a);
}

static enum status run(const struct words *w, struct arena *a)
{
    if ((w->steps < 1 && w->steps != NOT_GIVEN) || w->steps > STEPS_MOST)
        return fail(ST_USAGE, "--steps must be 1 to %d", STEPS_MOST);
    const char *of_suite = w->size     ? "size"
                           : w->iters  ? "iters"
                           : w->full   ? "full"
                           : w->rounds ? "rounds"
                                       : NULL;
    if (!w->suite && of_suite)
        return fail(ST_USAGE, "--%s needs --suite=NAME; --suite=list shows the suites", of_suite);
    if (w->suite && !strcmp(w->suite, "list")) return list_suites(&w->output.form, a);
    if (w->suite || is_grid(w) || w->output.form.csv || w->output.form.markdown)
        return run_sheet(w, a);
    return run_step(w, a);
}

static enum status read(struct words *w, const struct opt *options, int argc, char **argv)
{
    TRY(opt_parse(options, &argc, argv, config_is_key));
    w->word = argv;
    w->words = argc;
    if (w->iters < 1 && w->iters != NOT_GIVEN) return fail(ST_USAGE, "--iters must be at least 1");
    if (w->iters == NOT_GIVEN) w->iters = 0; /* the default of the suite */
    return ST_OK;
}

enum status cmd_bench(int argc, char **argv, struct arena *a)
{
    for (int i = 0; i < COUNT_OF(parts) && argc > 0; i++)
        if (!strcmp(argv[0], name_of(&parts[i]))) return command_run(&parts[i], argc - 1, argv + 1);
    if (argc > 0) TRY(check_word(argv[0]));
    struct words w = {.steps = NOT_GIVEN, .iters = NOT_GIVEN};
    const struct opt options[] = {
        {"suite", OPT_TEXT, &w.suite, "NAME",
         "run a ready-made experiment; --suite=list shows them all"},
        {"phase", OPT_TEXT, &w.phase, "NAME,...",
         "columns of a grid: inference, forward, backward, update, step (all except inference)"},
        {"warmup", OPT_TEXT, &w.warmup, "N,...", "steps before the measured ones (5)"},
        {"steps", OPT_INT, &w.steps, "N", "measured steps (50; in a grid 10)"},
        {"order", OPT_TEXT, &w.order, "NAME",
         "order of cells: rounds, twice (the second time reversed) or once (auto)"},
        {"mem-limit", OPT_TEXT, &w.limit, "SIZE", "as in 80GiB: skip cells that need more memory"},
        {"size", OPT_TEXT, &w.size, "NAME,...", "suites: only these models"},
        {"iters", OPT_INT, &w.iters, "N", "suites that train: number of iterations"},
        {"wide", OPT_FLAG, &w.wide, NULL,
         "first a table of one row a model: its sizes, forward, backward and step, each with its "
         "std"},
        {"each-step", OPT_FLAG, &w.each_step, NULL, "also the time of every single step, drawn"},
        {"rounds", OPT_INT, &w.rounds, "N", "cs336-warmup: processes of each row (3)"},
        {"full", OPT_FLAG, &w.full, NULL, "suites: use the published size on a CPU, too"},
        {"save", OPT_TEXT, &w.output.save, "FILE", "path of the result (bench.json in --out_dir)"},
        {"vocab", OPT_INT, &w.vocab, "N", "size of the vocabulary (default: of the data set)"},
        TABLE_FORM_OPTIONS(&w.output.form),
        {0},
    };
    w.output.command = command_text("bench", argc, argv, a);
    TRY(read(&w, options, argc, argv));
    return run(&w, a);
}
