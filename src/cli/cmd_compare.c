/* strobe compare: trains once for each combination of values, each in a separate process, so that
 * no run inherits memory from another. The processes train in turns, if they fit in memory
 * together, else one after the other. Then it reports on all runs. */
#include "base/interrupt.h"
#include "base/log.h"
#include "base/opt.h"
#include "bench/bench_grid.h"
#include "cli/child.h"
#include "cli/command.h"
#include "cli/planned.h"
#include "cli/turns.h"
#include "engine/device.h"
#include "engine/fit.h"
#include "engine/memory.h"
#include "engine/tune.h"
#include "model/model.h"
#include "train/rundir.h"

#include <limits.h>
#include <string.h>

enum { VARIANTS_MOST = 16, WARM_UP = 5 };
/* Of a process on a GPU besides its plans: context, libraries, compiled kernels. */
static const int64_t CONTEXT_BYTES = 1 << 30;

struct variant {
    const char *name, *dir; /* "flash=false", "runs/x/flash=false" */
    char *word[BENCH_AXES]; /* "--flash=false" */
    struct device device;
    int64_t bytes; /* of device memory that a training takes */
};

struct comparing {
    struct bench_grid grid; /* its axes are the keys that vary */
    char **common;          /* the configuration and the overrides of all variants */
    int commons;
    struct variant variant[VARIANTS_MOST];
    int variants;
    const char *out_dir;
    bool overwrite, resume;
    bool one_by_one;    /* not in turns */
    int64_t iters_most; /* of a variant */
};

static enum status sort_words(struct comparing *c, int argc, char **argv, struct arena *a)
{
    c->common = ARENA_NEW(a, char *, argc + 1);
    for (int i = 0; i < argc; i++)
        if (bench_is_list(argv[i]))
            TRY(bench_add_axis(&c->grid, argv[i], a));
        else
            c->common[c->commons++] = argv[i];
    if (c->grid.axes) return ST_OK;
    return fail(ST_USAGE,
                "nothing to compare; give a key several values, as in --flash=false,true");
}

/* Variant `n` of the Cartesian product; the last key varies fastest. */
static void make_variant(struct comparing *c, int n, struct arena *a)
{
    struct variant *v = &c->variant[n];
    v->name = "";
    for (int i = c->grid.axes - 1; i >= 0; i--) {
        const struct bench_axis *x = &c->grid.axis[i];
        const char *word = arena_printf(a, "%s=%s", x->key, x->value[n % x->values]);
        v->name = *v->name ? arena_printf(a, "%s,%s", word, v->name) : word;
        v->word[i] = arena_printf(a, "--%s", word);
        n /= x->values;
    }
    v->dir = arena_printf(a, "%s/%s", c->out_dir, v->name);
}

/* The kinds of a training, as the trainer opens them. */
static unsigned kinds_of(const struct config *c)
{
    return memory_kinds(c, EXTENT_STEP) | 1u << GRAPH_EVAL | 1u << GRAPH_LOGITS |
           1u << GRAPH_DECODE;
}

static enum status measure_variant(struct variant *v, const struct config *config, struct arena *a)
{
    struct program p;
    struct arena scratch = {0};
    int64_t vocab;
    TRY(device_of(config, &v->device));
    TRY(planned_vocabulary(config, 0, &vocab, a));
    enum status st =
        program_for(&p, config, vocab, kinds_of(config), device_backend(config), &scratch);
    if (st == ST_OK) {
        bool host = v->device.backend->host_memory;
        v->bytes = program_bytes(&p);
        v->bytes += host ? fit_host_bytes(&p, false, config->plan.threads) : CONTEXT_BYTES;
    }
    arena_release(&scratch);
    return st;
}

/* Whether all variants fit in the memory of their devices at once, with a tenth left over. */
static bool fit_together(const struct comparing *c)
{
    for (int i = 0; i < c->variants; i++) {
        const struct device *d = &c->variant[i].device;
        int64_t sum = 0, free = d->backend->devices.free_memory(d->number);
        for (int k = 0; k < c->variants; k++)
            if (c->variant[k].device.backend == d->backend &&
                c->variant[k].device.number == d->number)
                sum += c->variant[k].bytes;
        if (free >= 0 && sum > free / 10 * 9) return false;
    }
    return true;
}

/* Refuses what `strobe train` would refuse, before the first run starts. */
static enum status check_variant(struct comparing *c, struct variant *v, struct arena *a)
{
    struct config config;
    enum status st = command_read_config(&config, c->commons, c->common, true, a);
    for (int i = 0; st == ST_OK && i < c->grid.axes; i++) st = config_set(&config, v->word[i], a);
    if (st == ST_OK) st = model_check(&config);
    if (st == ST_OK) st = model_check_trained(&config.model);
    if (st != ST_OK) return st;
    if (strlen(v->name) > NAME_MAX || strchr(v->name, '/'))
        return fail(ST_USAGE, "%s cannot be a folder name; choose shorter values, without /",
                    v->name);
    if (rundir_has_run(v->dir) && !c->overwrite && !c->resume)
        return fail(ST_USAGE,
                    "%s already contains a run; continue it (--init_from=resume), choose another "
                    "--out_dir, or replace it (--overwrite)",
                    v->dir);
    if (config.train.max_iters > c->iters_most) c->iters_most = config.train.max_iters;
    return measure_variant(v, &config, a);
}

static enum status plan_variants(struct comparing *c, int argc, char **argv, struct arena *a)
{
    TRY(sort_words(c, argc, argv, a));
    struct config config;
    TRY(command_read_config(&config, c->commons, c->common, true, a));
    c->out_dir = config.train.out_dir;
    c->resume = config.train.init_from == INIT_RESUME;
    if (c->resume && c->overwrite)
        return fail(ST_USAGE,
                    "--overwrite and --init_from=resume contradict each other; leave one out");
    int variants = 1;
    for (int i = 0; i < c->grid.axes; i++) {
        variants *= c->grid.axis[i].values;
        if (variants > VARIANTS_MOST)
            return fail(ST_USAGE, "more than %d runs; vary fewer keys or values", VARIANTS_MOST);
    }
    for (; c->variants < variants; c->variants++) make_variant(c, c->variants, a);
    for (int i = 0; i < variants; i++) TRY(check_variant(c, &c->variant[i], a));
    return ST_OK;
}

/* The command line of one training. */
static char **words_of(const struct comparing *c, const struct variant *v, struct arena *a)
{
    char **word = ARENA_NEW(a, char *, c->commons + c->grid.axes + 8);
    int words = 0;
    word[words++] = "strobe";
    word[words++] = "train";
    for (int i = 0; i < c->commons; i++) word[words++] = c->common[i];
    for (int i = 0; i < c->grid.axes; i++) word[words++] = v->word[i];
    word[words++] = arena_printf(a, "--out_dir=%s", v->dir);
    if (c->overwrite) word[words++] = "--overwrite";
    if (c->resume && !rundir_has_run(v->dir)) word[words++] = "--init_from=scratch";
    return word;
}

static enum status fail_stopped(const char *name)
{
    return fail(ST_INTERRUPTED,
                "stopped at %s; repeat the command with --init_from=resume to continue", name);
}

/* The first turn is a warm-up: as many iterations as reports leave out. */
static enum status run_in_turns(const struct comparing *c, struct arena *a)
{
    struct turns_of of[VARIANTS_MOST];
    int64_t warm = c->iters_most / 4 < WARM_UP ? c->iters_most / 4 : WARM_UP;
    for (int i = 0; i < c->variants; i++)
        of[i] = (struct turns_of){words_of(c, &c->variant[i], a), c->variant[i].name};
    log_info("%d variants train in turns, so that all see the same machine", c->variants);
    enum status st = turns_run(of, c->variants, warm, false, a);
    if (st == ST_INTERRUPTED || (st == ST_OK && interrupt_noted())) return fail_stopped("a turn");
    return st;
}

static enum status run_one_by_one(const struct comparing *c, struct arena *a)
{
    enum status st = ST_OK;
    for (int i = 0; i < c->variants && st == ST_OK; i++) {
        const struct variant *v = &c->variant[i];
        log_info("\n=== %d of %d: %s", i + 1, c->variants, v->name);
        st = child_run(words_of(c, v, a), v->name, false);
        if (st == ST_INTERRUPTED || (st == ST_OK && interrupt_noted())) st = fail_stopped(v->name);
    }
    return st;
}

static enum status run_variants(const struct comparing *c, struct arena *a)
{
    bool together = fit_together(c), turns = together && !c->one_by_one && c->variants > 1;
    if (!together)
        log_info("the variants do not fit in memory together: they train one after the other, so "
                 "a drift of the machine between them does not cancel");
    interrupt_catch();
    enum status st = turns ? run_in_turns(c, a) : run_one_by_one(c, a);
    interrupt_release();
    return st;
}

/* Runs `strobe report`, which prints the table and writes the page next to the runs. */
static enum status report(const struct comparing *c, bool json, struct arena *a)
{
    char **word = ARENA_NEW(a, char *, c->variants + 2);
    int words = 0;
    for (int i = 0; i < c->variants; i++) word[words++] = arena_strdup(a, c->variant[i].dir);
    if (json) word[words++] = "--json";
    log_info("%s", "");
    return cmd_report(words, word);
}

enum status cmd_compare(int argc, char **argv)
{
    struct comparing c = {0};
    bool json = false;
    const struct opt options[] = {
        {"overwrite", OPT_FLAG, &c.overwrite, NULL, "replace the runs in out_dir"},
        {"json", OPT_FLAG, &json, NULL, "print the table as JSON"},
        {"one-by-one", OPT_FLAG, &c.one_by_one, NULL,
         "train one variant after the other, not in turns"},
        {0},
    };
    TRY(opt_parse(options, &argc, argv, config_is_key));
    struct arena a = {0};
    enum status st = plan_variants(&c, argc, argv, &a);
    if (st == ST_OK) st = run_variants(&c, &a);
    if (st == ST_OK) st = report(&c, json, &a);
    arena_release(&a);
    return st;
}
