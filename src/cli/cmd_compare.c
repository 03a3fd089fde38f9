/* strobe compare: trains once for each combination of values, each in a separate process, so that
 * no run inherits memory from another. The processes train in turns, if they fit in memory
 * together, else one after the other. Then it reports on all runs. */
#include "base/file.h"
#include "base/interrupt.h"
#include "base/threads.h"
#include "cli/child.h"
#include "cli/command.h"
#include "cli/device.h"
#include "cli/variants.h"
#include "engine/memory.h"
#include "model/model.h"
#include "train/rundir.h"

#include <string.h>

struct comparing {
    struct variants of;
    bool overwrite, resume;
    bool one_by_one;           /* not in turns */
    bool by_mpi;               /* a variant has ranks that are processes */
    int64_t iters_most;        /* of a variant */
    int kept;                  /* last words of all variants, but not of runs that are continued */
    bool alone[VARIANTS_MOST]; /* on a CPU, one rank, and the user sets no number of threads */
    int64_t threads;           /* of these variants */
};

/* Refuses what `strobe train` would refuse, before the first run starts. */
static enum status check_variant(struct comparing *c, int i, struct arena *a)
{
    struct config config;
    bool has_run;
    const char *dir = c->of.variant[i].dir;
    TRY(variants_config(&c->of, i, &config, a));
    TRY(model_check_trained(&config.model));
    TRY(rundir_look(dir, &has_run));
    if (has_run && !c->overwrite && !c->resume)
        return fail(ST_USAGE,
                    "%s already contains a run; continue it (--init_from=resume), choose another "
                    "--out_dir, or replace it (--overwrite)",
                    dir);
    bool continues = has_run && c->resume;
    if (config.train.max_iters > c->iters_most) c->iters_most = config.train.max_iters;
    c->by_mpi |= config.ranks.count > 1 && config.ranks.by == RANKS_MPI;
    unsigned kinds = memory_kinds(&config, EXTENT_STEP) | 1u << GRAPH_EVAL | 1u << GRAPH_LOGITS |
                     1u << GRAPH_DECODE; /* as the trainer opens them */
    TRY(variants_plan(&c->of, i, &config, kinds, a));
    c->alone[i] = c->of.variant[i].device.backend->host_memory && config.ranks.count == 1 &&
                  !config.plan.threads && !threads_asked();
    struct config run;
    if (c->alone[i] && continues)
        TRY(command_read_config(&run, 1, (char *[]){arena_strdup(a, dir)}, true, a));
    if (c->alone[i] && continues) c->threads = run.plan.threads;
    return ST_OK;
}

/* One number of threads for all variants, whether they take turns or not: that of runs which are
 * continued, else as many as a training would use now. */
static void fix_threads(struct comparing *c)
{
    bool any = false;
    for (int i = 0; i < c->of.n; i++) any |= c->alone[i];
    if (any && !c->threads) c->threads = device_free_threads(&c->of.config);
    if (any && !c->threads) c->threads = threads_available();
}

/* Sets the keys that are left at auto, which would differ among variants and machines. A run that
 * is continued keeps its own values, except for replay, which is chosen anew. */
static void fix_choices(struct comparing *c, struct arena *a)
{
    static const char *const plain[] = {"replay=false", "dtype=float32", "pad_vocab=0"};
    int added = 0;
    struct variants *v = &c->of;
    char **word = ARENA_NEW(a, char *, v->commons + COUNT_OF(plain));
    memcpy(word, v->common, (size_t)v->commons * sizeof *word);
    for (int i = 0; i < COUNT_OF(plain); i++) {
        const char *key = arena_printf(a, "%.*s", (int)strcspn(plain[i], "="), plain[i]);
        bool set = strcmp(config_value_text(&v->config, key, a), "auto") != 0;
        for (int k = 0; k < v->grid.axes; k++) set |= !strcmp(v->grid.axis[k].key, key);
        if (set) continue;
        word[v->commons + added++] = arena_printf(a, "--%s", plain[i]);
        c->kept += strcmp(key, "replay") != 0;
    }
    v->common = word;
    v->commons += added;
}

static enum status plan_variants(struct comparing *c, int argc, char **argv, struct arena *a)
{
    TRY(variants_read(&c->of, argc, argv, a));
    fix_choices(c, a);
    c->resume = config_resumes(&c->of.config);
    if (c->resume && c->overwrite)
        return fail(ST_USAGE,
                    "--overwrite and --init_from=resume contradict each other; leave one out");
    for (int i = 0; i < c->of.n; i++) TRY(check_variant(c, i, a));
    fix_threads(c);
    return ST_OK;
}

/* The command line of one training. */
static char **words_of(const struct comparing *c, int i, struct arena *a)
{
    bool continues = c->resume && rundir_has_run(c->of.variant[i].dir);
    int words = c->of.commons - (continues ? c->kept : 0);
    char **word = variants_words(&c->of, i, "train", c->of.common, words, a);
    if (c->alone[i] && !continues)
        word = job_with_word(word, arena_printf(a, "--threads=%lld", (long long)c->threads), a);
    if (c->overwrite) word = job_with_word(word, "--overwrite", a);
    if (c->resume && !continues) word = job_with_word(word, "--init_from=scratch", a);
    return word;
}

static enum status run_variants(const struct comparing *c, struct arena *a)
{
    bool together = variants_fit(&c->of);
    bool turns = together && !c->by_mpi && !c->one_by_one && c->of.n > 1;
    if (c->by_mpi)
        log_info("ranks_by=mpi: ranks that are processes cannot train in turns, so the variants "
                 "train one after the other; --ranks_by=threads lets them take turns");
    else if (!together)
        log_info("the variants do not fit in memory together: they train one after the other, so "
                 "a drift of the machine between them does not cancel");
    else if (turns)
        log_info("%d variants train in turns, so that all see the same machine", c->of.n);
    struct job job[VARIANTS_MOST];
    for (int i = 0; i < c->of.n; i++)
        job[i] = (struct job){words_of(c, i, a), c->of.variant[i].name};
    /* The first turn is a warm-up: as many iterations as reports leave out. */
    struct jobs_options options = {.in_turns = turns, .warm = warm_up_of(c->iters_most)};
    interrupt_catch();
    enum status st = jobs_run(job, c->of.n, &options, a);
    if (st == ST_INTERRUPTED || interrupt_noted())
        st = fail(ST_INTERRUPTED, "%s; repeat the command with --init_from=resume to continue",
                  turns                  ? "stopped at a turn"
                  : st == ST_INTERRUPTED ? arena_strdup(a, fail_message())
                                         : "stopped");
    interrupt_release();
    return st;
}

/* Runs `strobe report` on the runs that have a log: it prints the table and writes the page next to
 * them. */
static enum status report(const struct comparing *c, bool json, struct arena *a)
{
    char **word = ARENA_NEW(a, char *, c->of.n + 2);
    int words = 0;
    for (int i = 0; i < c->of.n; i++)
        if (file_exists(arena_printf(a, "%s/log.jsonl", c->of.variant[i].dir)))
            word[words++] = arena_strdup(a, c->of.variant[i].dir);
    if (!words) return ST_OK;
    if (json) word[words++] = "--json";
    log_info("%s", "");
    return cmd_report(words, word, a);
}

/* A variant that fails, as one whose loss becomes NaN, is part of the report. */
static enum status compare(const struct comparing *c, bool json, struct arena *a)
{
    enum status st = run_variants(c, a);
    struct failure first;
    if (st == ST_INTERRUPTED) return st;
    fail_keep(&first);
    enum status reported = report(c, json, a);
    if (st == ST_OK) return reported;
    fail_restore(&first);
    return st;
}

enum status cmd_compare(int argc, char **argv, struct arena *a)
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
    TRY(plan_variants(&c, argc, argv, a));
    return compare(&c, json, a);
}
