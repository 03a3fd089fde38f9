/* strobe bench CONFIG: a training step next to its own matmuls, interleaved, with spread.
 * strobe bench CONFIG... --phase=...: a grid of cells.
 * strobe bench --suite=NAME: a ready-made experiment.
 * strobe bench kernels|attention: parts of a step alone. */
#include "base/interrupt.h"
#include "base/own.h"
#include "base/threads.h"
#include "cli/child.h"
#include "cli/command.h"
#include "cli/device.h"
#include "cli/output.h"
#include "cli/planned.h"
#include "suite/grid.h"
#include "view/ceilings.h"
#include "view/step_view.h"

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

enum { STEPS = 50, GRID_STEPS = 10 };
static const char first_phases[] = "forward,backward,update,step", first_warmup[] = "5";

struct bench {
    char **word; /* configurations and overrides */
    int words;
    const char *name; /* of a suite, */
    const struct suite *suite;
    struct bench_grid grid; /* or a grid if that is NULL */
    struct suite_request request;
    int64_t vocab; /* 0: not given */
    struct device device;
    struct output output;
    const char *seen_by; /* what strobe report takes to show the result: a file or a folder */
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
static bool is_grid(const struct bench *b)
{
    int configs = 0;
    bool lists = false;
    for (int i = 0; i < b->words; i++) {
        configs += !config_is_override(b->word[i]);
        lists |= config_is_override(b->word[i]) && bench_is_list(b->word[i]);
    }
    return configs > 1 || lists || b->request.phase || b->request.limit || b->request.order ||
           b->output.save || b->request.wide || b->request.each_step ||
           (b->request.warmup && strchr(b->request.warmup, ','));
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

/* The value of out_dir on the command line; NULL: not given. */
static const char *out_dir_of(const struct bench *b)
{
    static const char key[] = "out_dir=";
    const char *found = NULL;
    for (int i = 0; i < b->words; i++) {
        const char *word = b->word[i] + strspn(b->word[i], "-");
        if (config_is_override(b->word[i]) && !strncmp(word, key, strlen(key)))
            found = word + strlen(key);
    }
    return found;
}

/* --- a grid ----------------------------------------------------------------------------------- */

/* "configs/gpt2_124m.conf" -> "gpt2_124m" */
static const char *stem_of(const char *path, struct arena *a)
{
    const char *name = command_last_part(path), *dot = strrchr(name, '.');
    return dot && dot != name ? arena_printf(a, "%.*s", (int)(dot - name), name) : name;
}

static enum status add_subject(struct bench *b, char *path, struct arena *a)
{
    char **word = ARENA_NEW(a, char *, b->words + 1);
    int words = 0;
    struct bench_subject *s = &b->grid.subject[b->grid.subjects++];
    word[words++] = path;
    for (int i = 0; i < b->words; i++)
        if (config_is_override(b->word[i]) && !bench_is_list(b->word[i]))
            word[words++] = b->word[i];
    s->name = stem_of(path, a);
    TRY(command_read_config(&s->config, words, word, true, a));
    return planned_vocabulary(&s->config, b->vocab, &s->vocab, a);
}

static enum status plan_vocabulary(const struct bench_grid *g, const struct config *c, int64_t *ret,
                                   struct arena *a)
{
    return planned_vocabulary(c, g->vocab, ret, a);
}

static enum status make_grid(struct bench *b, struct arena *a)
{
    struct bench_grid *g = &b->grid;
    *g = (struct bench_grid){.steps = b->request.steps ? (int)b->request.steps : GRID_STEPS,
                             .vocabulary = plan_vocabulary,
                             .vocab = b->vocab};
    g->subject = ARENA_NEW(a, struct bench_subject, b->words + 1);
    for (int i = 0; i < b->words; i++) {
        if (!config_is_override(b->word[i]))
            TRY(add_subject(b, b->word[i], a));
        else if (bench_is_list(b->word[i]))
            TRY(bench_add_axis(g, b->word[i], a));
    }
    if (!g->subjects)
        return fail(
            ST_USAGE,
            "no configuration given; name one, for example configs/shakespeare_char_cpu.conf");
    TRY(bench_read_warmups(g, b->request.warmup ? b->request.warmup : first_warmup));
    TRY(bench_read_order(&g->order, b->request.order));
    return bench_read_lines(&g->lines, b->request.phase ? b->request.phase : first_phases);
}

/* --- the sheet -------------------------------------------------------------------------------- */

/* Chooses the folder and the path of the result, and checks that it can be written before anything
 * is measured. Without a path, as with --json alone, it is not written. */
static enum status choose_path(struct bench *b, struct arena *a)
{
    const char *given = out_dir_of(b), *name = b->suite ? b->suite->name : "bench";
    const char *folder = given ? given : arena_printf(a, "runs/%s", name);
    b->request.out_dir = folder;
    b->seen_by = b->output.save ? b->output.save : folder;
    if (!b->output.save && b->output.form.json && !given) return ST_OK;
    if (!b->output.save) {
        TRY(file_make_dirs(folder));
        b->output.save = arena_printf(a, "%s/bench.json", folder);
    }
    return own_check_writable(b->output.save, OWN_BENCH);
}

static enum status check_suite_words(const struct bench *b)
{
    for (int i = 0; i < b->words; i++)
        if (!config_is_override(b->word[i]))
            return fail(ST_USAGE, "a suite has fixed configurations; leave %s out", b->word[i]);
    if (b->vocab) return fail(ST_USAGE, "a suite has a fixed vocabulary; leave --vocab out");
    return ST_OK;
}

/* After Ctrl-C the table has the cells measured so far, and a note says so. */
static enum status measure(struct bench *b, struct arena *a)
{
    struct suite_request *r = &b->request;
    struct outcome x;
    const char *name = b->suite ? b->suite->name : "bench";
    r->user = &x;
    outcome_begin(&x, name, 1, &b->device);
    struct sheet *s = &x.sheet;
    s->name = name;
    outcome_add(&x, b->suite ? suite_run(b->suite, r, s, a) : grid_run(&b->grid, r, s, a));
    if (!outcome_end(&x)) return outcome_finish(&x, &b->output, a);
    bool whole = !interrupt_noted();
    if (!whole) sheet_note(s, "Stopped by Ctrl-C: these are the cells measured so far.");
    TRY(output_origin(s, x.device, b->output.command, x.others, a));
    command_print_sheet(s, &b->output.form);
    fflush(stdout);
    if (b->output.save) {
        TRY(sheet_write(s, b->output.save));
        output_say_written(b->output.save, b->seen_by, a);
    }
    TRY(output_conclude(&s->table[0].table, !whole));
    char *report[] = {"report", arena_strdup(a, r->out_dir)};
    bool runs = b->suite && b->suite->runs;
    return runs ? run_child(NULL, report, COUNT_OF(report), true) : ST_OK;
}

static enum status run_sheet(struct bench *b, struct arena *a)
{
    struct suite_request *r = &b->request;
    struct config c;
    struct machine m;
    TRY(table_form_check(&b->output.form));
    r->each = outcome_share;
    r->command = run_child;
    if (b->name) {
        TRY(suite_find(b->name, &b->suite));
        TRY(check_suite_words(b));
        TRY(suite_check_options(b->suite, r));
        r->word = b->word;
        r->words = b->words;
        config_init(&c);
        for (int i = 0; i < b->words; i++)
            if (!bench_is_list(b->word[i])) TRY(config_set(&c, b->word[i], a));
    } else {
        TRY(make_grid(b, a));
        c = b->grid.subject[0].config;
    }
    TRY(device_prepare(&c, &b->device));
    TRY(choose_path(b, a));
    if (b->suite && b->suite->machine) {
        TRY(ceilings_get(&m, &b->device, a));
        r->machine = &m;
    }
    return measure(b, a);
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
static enum status run_step(const struct bench *b, struct arena *a)
{
    int64_t vocab, steps = b->request.steps ? b->request.steps : STEPS;
    struct bench_grid g = {0};
    struct config c;
    TRY(bench_read_warmups(&g, b->request.warmup ? b->request.warmup : first_warmup));
    TRY(command_read_config(&c, b->words, b->word, true, a));
    TRY(model_check(&c));
    threads_set(c.plan.threads);
    TRY(machine_choose(&c, NULL, true, a));
    TRY(planned_vocabulary(&c, b->vocab, &vocab, a));
    return step_view_run(&c, vocab, g.warmup[0], (int)steps, b->output.form.json, a);
}

static enum status run(struct bench *b, struct arena *a)
{
    const struct table_form *f = &b->output.form;
    if (!b->name) TRY(suite_check_options(NULL, &b->request));
    if (b->name && !strcmp(b->name, "list")) return list_suites(f, a);
    return b->name || is_grid(b) || f->csv || f->markdown ? run_sheet(b, a) : run_step(b, a);
}

enum status cmd_bench(int argc, char **argv, struct arena *a)
{
    for (int i = 0; i < COUNT_OF(parts) && argc > 0; i++)
        if (!strcmp(argv[0], name_of(&parts[i]))) return command_run(&parts[i], argc - 1, argv + 1);
    if (argc > 0) TRY(check_word(argv[0]));
    struct bench b = {0};
    struct opt options[] = {
        {"suite", OPT_TEXT, &b.name, "NAME",
         "run a ready-made experiment; --suite=list shows them all"},
        [1 + SUITE_OPTION_COUNT] = {"save", OPT_TEXT, &b.output.save, "FILE",
                                    "path of the result (bench.json in --out_dir)"},
        {"vocab", OPT_INT, &b.vocab, "N", "size of the vocabulary (default: of the data set)"},
        TABLE_FORM_OPTIONS(&b.output.form),
        {0},
    };
    suite_add_options(&b.request, options + 1, a);
    b.output.command = command_text("bench", argc, argv, a);
    TRY(opt_parse(options, &argc, argv, config_is_key));
    b.word = argv;
    b.words = argc;
    TRY(suite_read_options(&b.request));
    return run(&b, a);
}
