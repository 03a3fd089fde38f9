#include "view/ladder_view.h"

#include "base/str.h"
#include "view/ceilings.h"
#include "view/published.h"

#include <jansson.h>
#include <string.h>

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
    COLUMNS
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

/* Of a GPU's ladder what others published stands behind the columns above. */
static const struct table_column *columns_with(const struct published *p, struct arena *a)
{
    struct table_column *column = ARENA_NEW(a, struct table_column, COLUMNS + p->sources);
    memcpy(column, columns, sizeof columns);
    for (int i = 0; i < p->sources; i++)
        column[COLUMNS + i] =
            (struct table_column){arena_printf(a, "published_%s_tokens_per_s", p->source[i].id),
                                  arena_printf(a, "%s, published", p->source[i].machine),
                                  "tokens/s, published by others", true};
    return column;
}

static struct table make_table(const struct ladder *l, const struct published *p, struct arena *a)
{
    struct table t = {
        .column = columns_with(p, a), .columns = COLUMNS + p->sources, .rows = l->rungs};
    t.cell = ARENA_NEW(a, struct table_cell, t.rows * t.columns);
    for (int i = 0; i < t.rows; i++) {
        const struct ladder_rung *r = &l->rung[i];
        table_set_text(&t, i, COLUMN_RUNG, r->name);
        table_set_text(&t, i, COLUMN_DIFFERS, r->differs);
        if (r->reason)
            table_set_text(&t, i, COLUMN_NOTE, r->reason);
        else
            set_figures(&t, i, r, a);
        for (int k = 0; k < p->sources; k++) {
            double tokens = published_tokens(&p->source[k], r->name);
            if (tokens > 0) table_set_count(&t, i, COLUMNS + k, tokens, a);
        }
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

static json_t *make_json(const struct ladder_view *v, const struct table *t)
{
    const struct ladder *l = v->ladder;
    const struct config *c = v->config;
    bool in_turn = l->order == LADDER_IN_TURN;
    json_t *j = json_pack("{s:i, s:I, s:I, s:f, s:b, s:o, s:o}", "v", 1, "vocabulary",
                          (json_int_t)v->vocab, "tokens_per_step",
                          (json_int_t)(c->data.batch_size * c->model.block_size *
                                       c->train.gradient_accumulation_steps),
                          "parameters", l->parameters, "interleaved", (int)in_turn, "machine",
                          machine_json(v->machine), "rungs", table_json(t));
    if (l->flops_per_token > 0) {
        json_object_set_new(j, "flops_per_token", json_real(l->flops_per_token));
        json_object_set_new(j, "formula", json_string("6 N + 12 L C T"));
    }
    return j;
}

void ladder_view_print(const struct ladder_view *v, const struct table_form *form, struct str *s,
                       struct arena *a)
{
    struct published published = {0};
    bool gpu = v->machine->gpu;
    if (gpu) published_read(&published, a);
    struct table t = make_table(v->ladder, &published, a);
    if (form->json) {
        json_print(make_json(v, &t), s);
        return;
    }
    table_form_print(form, &t, s);
    table_form_note(form,
                    arena_printf(a, "%s\n%s\n%s", formula_words(v->ladder, v->config, a),
                                 ceilings_words(v->machine, a), order_words[v->ladder->order]),
                    s);
    const char *words = clock_words(v->ladder, a);
    if (words) table_form_note(form, words, s);
    if (gpu) table_form_note(form, published_words(&published, a), s);
}
