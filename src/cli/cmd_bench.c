/* strobe bench CONFIG: a training step next to its own matmuls, interleaved, with spread.
 * strobe bench CONFIG... --phase=...: a grid of cells.
 * strobe bench --suite=NAME: a ready-made experiment.
 * strobe bench kernels|attention: parts of a step alone. */
#include "base/file.h"
#include "base/str.h"
#include "base/threads.h"
#include "cli/bench_sheet.h"
#include "cli/command.h"
#include "cli/planned.h"
#include "engine/device.h"
#include "view/bench_beside.h"

#include <string.h>

/* clang-format off */
static const struct command parts[] = {
    {"bench kernels", cmd_bench_kernels, "[CONFIG|RUN] [--key=value ...]", "time every kernel that accepts a call of a training step, and show which one is selected",
     NULL, "strobe bench kernels --op=attention --block_size=256"},
    {"bench attention", cmd_bench_attention, "[--T=64,128,...]", "time flash attention and unfused attention over lengths, head sizes and masks",
     NULL, "strobe bench attention --T=256,1024 --head_size=64"},
};
/* clang-format on */

enum { STEPS_MOST = 1000000, NOT_GIVEN = -1 };

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

/* One configuration and no list of values: a step and its matmuls alone. */
static enum status run_step(const struct bench_words *w, struct arena *a)
{
    int64_t vocab, steps = w->steps > 0 ? w->steps : 50;
    struct bench_grid g = {0};
    struct config c;
    TRY(bench_read_warmups(&g, w->warmup ? w->warmup : "5"));
    TRY(command_read_config(&c, w->words, w->word, true, a));
    TRY(model_check(&c));
    TRY(device_choose(&c, NULL, true));
    threads_set(c.plan.threads);
    TRY(planned_vocabulary(&c, w->vocab, &vocab, a));
    return bench_step_view(&c, vocab, g.warmup[0], (int)steps, w->form.json, a);
}

static enum status run(const struct bench_words *w, struct arena *a)
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
    if (w->suite && !strcmp(w->suite, "list")) return bench_sheet_list(&w->form, a);
    if (w->suite || bench_words_are_grid(w) || w->form.csv || w->form.markdown)
        return bench_sheet_run(w, a);
    return run_step(w, a);
}

static enum status read(struct bench_words *w, const struct opt *options, int argc, char **argv)
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
    struct bench_words w = {.steps = NOT_GIVEN, .iters = NOT_GIVEN};
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
        {"save", OPT_TEXT, &w.save, "FILE", "path of the result (bench.json in --out_dir)"},
        {"vocab", OPT_INT, &w.vocab, "N", "size of the vocabulary (default: of the data set)"},
        TABLE_FORM_OPTIONS(&w.form),
        {0},
    };
    w.command = command_text("bench", argc, argv, a);
    TRY(read(&w, options, argc, argv));
    return run(&w, a);
}
