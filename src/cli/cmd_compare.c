/* strobe compare: trains once for each combination of values, one run after the other, each in a
 * separate process, so that no run inherits memory from another. Then it reports on all runs. */
#include "base/interrupt.h"
#include "base/log.h"
#include "base/opt.h"
#include "bench/bench_grid.h"
#include "cli/child.h"
#include "cli/command.h"
#include "model/model.h"
#include "train/rundir.h"

#include <limits.h>
#include <string.h>

enum { VARIANTS_MOST = 16 };

struct variant {
    const char *name, *dir; /* "flash=false", "runs/x/flash=false" */
    char *word[BENCH_AXES]; /* "--flash=false" */
};

struct comparing {
    struct bench_grid grid; /* its axes are the keys that vary */
    char **common;          /* the configuration and the overrides of all variants */
    int commons;
    struct variant variant[VARIANTS_MOST];
    int variants;
    const char *out_dir;
    bool overwrite, resume;
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

/* Refuses what `strobe train` would refuse, before the first run starts. */
static enum status check_variant(const struct comparing *c, const struct variant *v,
                                 struct arena *a)
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
    return ST_OK;
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

static enum status run_variants(const struct comparing *c, struct arena *a)
{
    enum status st = ST_OK;
    interrupt_catch();
    for (int i = 0; i < c->variants && st == ST_OK; i++) {
        const struct variant *v = &c->variant[i];
        log_info("\n=== %d of %d: %s", i + 1, c->variants, v->name);
        st = child_run(words_of(c, v, a), v->name, false);
        if (st == ST_INTERRUPTED || (st == ST_OK && interrupt_noted()))
            st = fail(ST_INTERRUPTED,
                      "stopped at %s; repeat the command with --init_from=resume to continue",
                      v->name);
    }
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
