/* strobe ladder CONFIG: what fusion, bf16, flash attention and a padded vocabulary buy, one after the other. */
#include "base/isa.h"
#include "base/log.h"
#include "base/str.h"
#include "base/threads.h"
#include "cli/ceilings.h"
#include "cli/command.h"
#include "cli/planned.h"
#include "cli/table_form.h"
#include "measure/ladder.h"
#include "train/device.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { STEPS_MOST = 100000, SECONDS_MOST = 1000000, PERMILLE = 1000 };

enum {
    COLUMN_RUNG,
    COLUMN_DIFFERS,
    COLUMN_MS,
    COLUMN_STD,
    COLUMN_STEPS,
    COLUMN_TOKENS,
    COLUMN_BEFORE,
    COLUMN_FIRST,
    COLUMN_MEMORY,
    COLUMN_TAKEN,
    COLUMN_KERNELS,
    COLUMN_STARTED,
    COLUMN_TYPE,
    COLUMN_MFU,
    COLUMN_PLAN,
    COLUMN_LOSS,
    COLUMN_CLOCK,
    COLUMN_POWER,
    COLUMN_SLOWED,
    COLUMN_NOTE,
    COLUMN_PUBLISHED, /* of a GPU's ladder alone, as are the others of them */
    COLUMNS = COLUMN_PUBLISHED + LADDER_PUBLISHED
};

static const struct table_column columns[COLUMNS] = {
    [COLUMN_RUNG] = {"rung", "rung", "what is new", false},
    [COLUMN_DIFFERS] = {"differs", "differs by", "the keys that differ from the rung before",
                        false},
    [COLUMN_MS] = {"ms_median", "ms", "median time of a training step", true},
    [COLUMN_STD] = {"ms_std", "std", "standard deviation", true},
    [COLUMN_STEPS] = {"steps", "n", "steps timed", true},
    [COLUMN_TOKENS] = {"tokens_per_s", "tokens/s", "by the median", true},
    [COLUMN_BEFORE] = {"times_before", "x before",
                       "how many times as fast as the last rung that ran", true},
    [COLUMN_FIRST] = {"times_first", "x first", "how many times as fast as the first rung", true},
    [COLUMN_MEMORY] = {"memory_bytes", "memory", "of the plan: what the step takes at its peak",
                       true},
    [COLUMN_TAKEN] = {"taken_bytes", "taken", "of a GPU's memory, as its driver says", true},
    [COLUMN_KERNELS] = {"kernels_per_step", "kernels", "of the plan, that a step runs", true},
    [COLUMN_STARTED] = {"launches_per_step", "launches",
                        "of a GPU's kernels: one of the plan may be several", true},
    [COLUMN_TYPE] = {"dtype", "peak of", "the type of its products", false},
    [COLUMN_MFU] = {"mfu_percent", "MFU %", "6 N + 12 L C T FLOPs a token over that peak", true},
    [COLUMN_PLAN] = {"plan_percent", "plan %", "the FLOPs of the plan over that peak", true},
    [COLUMN_LOSS] = {"first_loss", "first loss", "of the first step: the same batch and weights",
                     true},
    [COLUMN_CLOCK] = {"clock_mhz", "MHz", "the device's clock meanwhile, the mean", true},
    [COLUMN_POWER] = {"power_w", "W", "the device's power meanwhile, the mean", true},
    [COLUMN_SLOWED] = {"throttled_percent", "slowed %",
                       "of the time in which power, heat or the like slowed the clock", true},
    [COLUMN_NOTE] = {"note", "note", "why it was not run", false},
    [COLUMN_PUBLISHED] = {"published_a100_tokens_per_s", "A100, published", "tokens/s, another's",
                          true},
    {"published_rtx_4060_ti_tokens_per_s", "RTX 4060 Ti, published", "tokens/s, another's", true},
};

static void set_gauges(struct table *t, int at, const struct gauge_summary *g, struct arena *a)
{
    double mhz = g->value[GAUGE_CLOCK].mean, watt = g->value[GAUGE_POWER].mean;
    if (g->samples == 0) return;
    if (mhz > 0) table_set(t, at, COLUMN_CLOCK, 4, mhz, a);
    if (watt > 0) table_set(t, at, COLUMN_POWER, 3, watt, a);
    if (g->throttled >= 0) table_set(t, at, COLUMN_SLOWED, 3, 100 * g->throttled, a);
}

static void set_figures(struct table *t, int at, const struct ladder_rung *r, struct arena *a)
{
    table_set(t, at, COLUMN_MS, 4, r->ms.median, a);
    table_set_std(t, at, COLUMN_STD, &r->ms, a);
    table_set(t, at, COLUMN_STEPS, 0, r->ms.n, a);
    table_set_count(t, at, COLUMN_TOKENS, r->tokens_per_s, a);
    if (r->times_before > 0) table_set(t, at, COLUMN_BEFORE, 3, r->times_before, a);
    table_set(t, at, COLUMN_FIRST, 3, r->times_first, a);
    table_set_bytes(t, at, COLUMN_MEMORY, r->facts.total, a);
    if (r->taken) table_set_bytes(t, at, COLUMN_TAKEN, r->taken, a);
    table_set(t, at, COLUMN_KERNELS, 0, (double)r->facts.kernels, a);
    if (r->started) table_set(t, at, COLUMN_STARTED, 0, (double)r->started, a);
    table_set_text(t, at, COLUMN_TYPE, machine_precision_name(r->products));
    if (r->mfu > 0) table_set(t, at, COLUMN_MFU, 3, 100 * r->mfu, a);
    if (r->plan_share > 0) table_set(t, at, COLUMN_PLAN, 3, 100 * r->plan_share, a);
    table_set(t, at, COLUMN_LOSS, 5, r->loss, a);
    set_gauges(t, at, &r->gauges, a);
}

static struct table make_table(const struct ladder *l, bool gpu, struct arena *a)
{
    struct table t = {
        .column = columns, .columns = gpu ? COLUMNS : COLUMN_PUBLISHED, .rows = l->rungs};
    t.cell = ARENA_NEW(a, struct table_cell, t.rows * t.columns);
    for (int i = 0; i < t.rows; i++) {
        const struct ladder_rung *r = &l->rung[i];
        table_set_text(&t, i, COLUMN_RUNG, r->name);
        table_set_text(&t, i, COLUMN_DIFFERS, r->differs);
        if (r->reason)
            table_set_text(&t, i, COLUMN_NOTE, r->reason);
        else
            set_figures(&t, i, r, a);
        for (int k = 0; gpu && k < LADDER_PUBLISHED; k++)
            if (r->published[k] > 0)
                table_set_count(&t, i, COLUMN_PUBLISHED + k, r->published[k], a);
    }
    return t;
}

static const char *formula_words(const struct ladder *l, const struct config *c, struct arena *a)
{
    if (!(l->flops_per_token > 0))
        return "plan %: what the operators of the plan count, over the measured peak of products "
               "of "
               "the type";
    return arena_printf(a,
                        "MFU %%: nanoGPT's count, 6 N + 12 L C T = %.4g FLOPs a token (N %.0f, L "
                        "%lld, C %lld, T %lld), over the measured peak of products of the type; "
                        "plan %%: what the operators of the plan count, over the same",
                        l->flops_per_token, l->parameters, (long long)c->model.n_layer,
                        (long long)c->model.n_embd, (long long)c->model.block_size);
}

static const char *const order_words[] = {
    [LADDER_IN_TURN] = "The rungs ran in turn, step by step.",
    [LADDER_NO_ROOM] = "Memory does not hold all rungs at once: they ran one after the other, so "
                       "drift of the clock is in the ratios.",
    [LADDER_WARM] =
        "The rungs ran one after the other, each warmed up first; a time is from before a "
        "batch is fed to where\nthe host has waited for the update, as in training.",
};

static const char *published_words(struct arena *a)
{
    const char *words = "Published: tokens/s of GPT-2 124M on other machines, by others, not "
                        "measured here:";
    for (int i = 0; i < LADDER_PUBLISHED; i++)
        words = arena_printf(a, "%s%s %s by %s", words, i ? ";" : "", ladder_published[i].machine,
                             ladder_published[i].where);
    return arena_printf(a, "%s.", words);
}

/* A rung that ran on a lower clock than another is not all that it is said to be. */
static const char *clock_words(const struct ladder *l, struct arena *a)
{
    static const double noticed = 0.02;
    const struct ladder_rung *slowest, *fastest;
    double range = ladder_clock_range(l, &slowest, &fastest);
    if (range < noticed) return NULL;
    struct str s = {0};
    gauge_print(&slowest->gauges, &s);
    const char *words = arena_printf(a,
                                     "The clock was %.0f %% lower at the rung %s (%s) than at %s: "
                                     "part of its time is the clock's.",
                                     100 * range, slowest->name, str_text(&s), fastest->name);
    str_release(&s);
    return words;
}

static json_t *make_json(const struct ladder *l, const struct config *c, int64_t vocab,
                         const struct machine *m, const struct table *t)
{
    bool in_turn = l->order == LADDER_IN_TURN;
    json_t *j = json_pack("{s:i, s:I, s:I, s:f, s:b, s:o, s:o}", "v", 1, "vocabulary",
                          (json_int_t)vocab, "tokens_per_step",
                          (json_int_t)(c->data.batch_size * c->model.block_size *
                                       c->train.gradient_accumulation_steps),
                          "parameters", l->parameters, "interleaved", (int)in_turn, "machine",
                          machine_json(m), "rungs", table_json(t));
    if (l->flops_per_token > 0) {
        json_object_set_new(j, "flops_per_token", json_real(l->flops_per_token));
        json_object_set_new(j, "formula", json_string("6 N + 12 L C T"));
    }
    return j;
}

static void show(void *user, double share, const char *what)
{
    progress_show(user, (int64_t)(share * PERMILLE), what);
}

/* What the ladder sets is not for the words. */
static enum status check_words(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        const char *key = argv[i] + strspn(argv[i], "-");
        int length = (int)strcspn(key, "=");
        if (ladder_sets(key, length))
            return fail(ST_USAGE, "the ladder sets %.*s itself; leave it out", length, key);
    }
    return ST_OK;
}

struct options {
    struct ladder_options run;
    struct table_form form;
    int64_t vocab;
};

static enum status run(int argc, char **argv, struct options *o, struct arena *a)
{
    struct config c;
    struct device device;
    struct machine m;
    struct ladder l;
    struct progress progress;
    TRY(check_words(argc, argv));
    TRY(command_read_config(&c, argc, argv, true, a));
    TRY(model_check(&c));
    TRY(planned_vocabulary(&c, o->vocab, &o->run.vocab, a));
    if (c.train.gradient_accumulation_steps > 1)
        log_info("a step has %lld micro-batches; --gradient_accumulation_steps=1 times one of them",
                 (long long)c.train.gradient_accumulation_steps);
    threads_set(c.plan.threads);
    TRY(isa_limit(c.plan.isa));
    TRY(device_of(&c, &device));
    TRY(ceilings_get(&m, &device, a));
    int64_t room = device.backend->devices.free_memory(device.number);
    o->run.room = room < 0 ? -1 : room / 10 * 9; /* the rest is for what else wants some */
    o->run.config = &c;
    o->run.machine = &m;
    o->run.each = show;
    o->run.user = &progress;
    progress_start(&progress, "ladder", 0, PERMILLE);
    enum status st = ladder_run(&o->run, &l, a);
    progress_end(&progress);
    TRY(st);
    struct table t = make_table(&l, m.gpu, a);
    struct str s = {0};
    if (o->form.json) {
        json_print(make_json(&l, &c, o->run.vocab, &m, &t), &s);
    } else {
        table_form_print(&o->form, &t, &s);
        table_form_note(&o->form,
                        arena_printf(a, "%s\n%s\n%s", formula_words(&l, &c, a),
                                     ceilings_words(&m, a), order_words[l.order]),
                        &s);
        const char *words = clock_words(&l, a);
        if (words) table_form_note(&o->form, words, &s);
        if (m.gpu) table_form_note(&o->form, published_words(a), &s);
    }
    fputs(str_text(&s), stdout);
    str_release(&s);
    return ST_OK;
}

enum status cmd_ladder(int argc, char **argv)
{
    struct options o = {0};
    int64_t steps = 20, limit = 60;
    const struct opt options[] = {
        {"steps", OPT_INT, &steps, "N", "of each rung that count; the median does (20)"},
        {"limit", OPT_INT, &limit, "SECONDS",
         "of one rung: slow ones make fewer steps, three, or one where that takes longer (60)"},
        {"vocab", OPT_INT, &o.vocab, "N", "size of the vocabulary (that of the data set)"},
        TABLE_FORM_OPTIONS(&o.form),
        {0},
    };
    TRY(opt_parse(options, &argc, argv, config_is_key));
    TRY(table_form_check(&o.form));
    if (steps < 1 || steps > STEPS_MOST || limit < 0 || limit > SECONDS_MOST)
        return fail(ST_USAGE, "--steps is 1 to %d, --limit 0 to %d", STEPS_MOST, SECONDS_MOST);
    o.run.steps = (int)steps;
    o.run.limit_ms = 1e3 * (double)limit;
    struct arena a = {0};
    enum status st = run(argc, argv, &o, &a);
    arena_release(&a);
    return st;
}
