#include "view/ladder_view.h"

#include "base/str.h"
#include "view/ceilings.h"
#include "view/published.h"

#include <jansson.h>
#include <string.h>

/* clang-format off */
#define COLUMN_LIST(X) \
    X(COLUMN_RUNG, "rung", "rung", "what this rung adds", false) \
    X(COLUMN_DIFFERS, "differs", "differs by", "keys that differ from the previous rung", false) \
    X(COLUMN_MS, "ms_median", "ms", "median time of a training step", true) \
    X(COLUMN_STD, "ms_std", "std", "standard deviation", true) \
    X(COLUMN_STEPS, "steps", "n", "measured steps", true) \
    X(COLUMN_TOKENS, "tokens_per_s", "tokens/s", "tokens per second, from the median", true) \
    X(COLUMN_BEFORE, "times_before", "x before", "speedup over the last rung that ran", true) \
    X(COLUMN_VERDICT, "verdict", "verdict", \
      "whether it is faster than the last rung that ran, by the rule of docs/MEASURING.md", false) \
    X(COLUMN_FIRST, "times_first", "x first", "speedup over the first rung", true) \
    X(COLUMN_MEMORY, "memory_bytes", "memory", "peak memory of the plan", true) \
    X(COLUMN_TAKEN, "taken_bytes", "taken", "GPU memory in use, as the driver reports it", true) \
    X(COLUMN_KERNELS, "kernels_per_step", "kernels", "nodes of the plan that a step runs", true) \
    X(COLUMN_STARTED, "launches_per_step", "launches", \
      "GPU kernels of a step; a node may launch several", true) \
    X(COLUMN_TYPE, "dtype", "peak of", "type of its matmuls", false) \
    X(COLUMN_MFU, "mfu_percent", "MFU %", \
      "6 N + 12 L C T FLOPs per token, as a share of that peak", true) \
    X(COLUMN_PLAN, "plan_percent", "plan %", "FLOPs of the plan, as a share of that peak", true) \
    X(COLUMN_ERROR, "product_error", "error", \
      "of one product of that type, 128 x 128 x 768, of normals: root mean square, relative", true) \
    X(COLUMN_LOSS, "first_loss", "first loss", \
      "loss of the first step, for the same batch and weights", true) \
    X(COLUMN_CLOCK, "clock_mhz", "MHz", "mean clock of the device during the rung", true) \
    X(COLUMN_POWER, "power_w", "W", "mean power of the device during the rung", true) \
    X(COLUMN_SLOWED, "throttled_percent", "slowed %", \
      "share of the time in which power, heat or another limit lowered the clock", true) \
    X(COLUMN_NOTE, "note", "note", "why the rung did not run", false)
/* clang-format on */

enum { COLUMN_LIST(TABLE_ID) COLUMNS };
static const struct table_column columns[] = {COLUMN_LIST(TABLE_COLUMN)};

static void set_gauges(struct table *t, int at, const struct gauge_summary *g, struct arena *a)
{
    double mhz = g->value[GAUGE_CLOCK].mean, watt = g->value[GAUGE_POWER].mean;
    if (!gauge_is_enough(g)) return;
    if (mhz > 0) table_set(t, at, COLUMN_CLOCK, 4, mhz, a);
    if (watt > 0) table_set(t, at, COLUMN_POWER, 3, watt, a);
    if (g->throttled >= 0) table_set(t, at, COLUMN_SLOWED, 3, 100 * g->throttled, a);
}

static void set_numbers(struct table *t, int at, const struct ladder_rung *r, struct arena *a)
{
    table_set(t, at, COLUMN_MS, 4, r->ms.median, a);
    table_set_std(t, at, COLUMN_STD, &r->ms, a);
    table_set(t, at, COLUMN_STEPS, 0, r->ms.n, a);
    table_set_count(t, at, COLUMN_TOKENS, r->tokens_per_s, a);
    if (r->times_before > 0) {
        if (r->speed.how != JUDGED_SAME_PLAN)
            table_set(t, at, COLUMN_BEFORE, 3, r->times_before, a);
        table_set_text(t, at, COLUMN_VERDICT, judge_name(&r->speed));
    }
    table_set(t, at, COLUMN_FIRST, 3, r->times_first, a);
    table_set_bytes(t, at, COLUMN_MEMORY, (int64_t)r->facts.total, a);
    if (r->taken) table_set_bytes(t, at, COLUMN_TAKEN, r->taken, a);
    table_set(t, at, COLUMN_KERNELS, 0, r->facts.kernels, a);
    if (r->started) table_set(t, at, COLUMN_STARTED, 0, (double)r->started, a);
    table_set_text(t, at, COLUMN_TYPE, machine_precision_name(r->precision));
    if (r->mfu > 0) table_set(t, at, COLUMN_MFU, 3, 100 * r->mfu, a);
    if (r->plan_share > 0) table_set(t, at, COLUMN_PLAN, 3, 100 * r->plan_share, a);
    if (r->error > 0) table_set_error(t, at, COLUMN_ERROR, r->error, a);
    table_set(t, at, COLUMN_LOSS, 5, r->loss, a);
    set_gauges(t, at, &r->gauges, a);
}

/* The columns above, followed by one column per published source. */
static const struct table_column *columns_with(const struct published *p, bool comparable,
                                               struct arena *a)
{
    struct table_column *column = ARENA_NEW(a, struct table_column, COLUMNS + p->sources);
    memcpy(column, columns, sizeof columns);
    published_columns(p, comparable, &column[COLUMNS], a);
    return column;
}

static struct table make_table(const struct ladder *l, const struct published *p, bool comparable,
                               struct arena *a)
{
    struct table t = table_new(columns_with(p, comparable, a), COLUMNS + p->sources, l->rungs, a);
    for (int i = 0; i < t.rows; i++) {
        const struct ladder_rung *r = &l->rung[i];
        table_set_text(&t, i, COLUMN_RUNG, r->name);
        table_set_text(&t, i, COLUMN_DIFFERS, r->differs);
        if (r->reason)
            table_set_text(&t, i, COLUMN_NOTE, r->reason);
        else
            set_numbers(&t, i, r, a);
        published_set(p, comparable, r->name, &t, i, COLUMNS, a);
    }
    return t;
}

static const char *formula_words(const struct ladder *l, const struct config *c, struct arena *a)
{
    if (!(l->flops_per_token > 0))
        return "plan %: the FLOPs of the plan's operators, as a share of the measured matmul peak "
               "of the type";
    return arena_printf(a,
                        "MFU %%: nanoGPT's count, 6 N + 12 L C T = %.4g FLOPs per token (N %.0f, L "
                        "%lld, C %lld, T %lld), as a share of the measured matmul peak of the "
                        "type; plan %%: the FLOPs of the plan's operators, as a share of the same",
                        l->flops_per_token, l->parameters, (long long)c->model.n_layer,
                        (long long)c->model.n_embd, (long long)c->model.block_size);
}

static const char *const order_words[] = {
    [LADDER_IN_TURN] = "The rungs were interleaved step by step.",
    [LADDER_NO_ROOM] = "All rungs together need more than half of the free memory, so they ran one "
                       "after the other, and the ratios include clock drift.",
    [LADDER_WARM] =
        "The rungs ran one after the other, each after its warm-up. A time starts before the "
        "batch is copied\nto the device and ends when the host has waited for the update, as in "
        "training.",
};

/* NULL: there is one rank. */
static const char *ranks_words(const struct config *c, struct arena *a)
{
    if (c->ranks.count == 1) return NULL;
    return arena_printf(
        a,
        "All ranks begin a step together; its time is that of rank 0. One rank and "
        "%lld ranks share the same micro-batches and processors. Memory and kernels "
        "are those of one rank.",
        (long long)c->ranks.count);
}

/* A warning if rungs ran at different clocks, because that distorts their ratios; NULL: none. */
static const char *clock_words(const struct ladder *l, struct arena *a)
{
    static const double noticed = 0.02;
    const struct ladder_rung *slowest, *fastest;
    double range = ladder_clock_range(l, &slowest, &fastest);
    if (range < noticed) return NULL;
    struct str s = {0};
    gauge_print(&slowest->gauges, &s);
    const char *words = arena_printf(a,
                                     "The clock was %.0f %% lower at rung %s (%s) than at %s, "
                                     "which explains part of its time.",
                                     100 * range, slowest->name, str_text(&s), fastest->name);
    str_release(&s);
    return words;
}

/* "12.3 ± 0.4 ms"; one sample has no deviation. */
static const char *ms_and_std(const struct stats *s, struct arena *a)
{
    return s->n > 1 ? arena_printf(a, "%.4g ± %.3g ms", s->median, s->std)
                    : arena_printf(a, "%.4g ms", s->median);
}

const char *ladder_view_padding(const struct ladder *l, struct arena *a)
{
    const struct ladder_rung *before = NULL;
    for (int i = 0; i < l->rungs; i++) {
        const struct ladder_rung *r = &l->rung[i];
        if (r->reason) continue;
        if (before && strstr(r->differs, "pad_vocab=") && i > 0) {
            const char *speed = judge_words(&r->speed, before->name, a);
            double flops = 100 * (r->facts.flops / before->facts.flops - 1);
            char old[32], new[32];
            return arena_printf(a,
                                "The padded vocabulary costs %.3g %% more FLOPs a step (%s and %s "
                                "by the plans). A step takes %s with it and %s without%s%s.",
                                flops, str_flops(old, before->facts.flops),
                                str_flops(new, r->facts.flops), ms_and_std(&r->ms, a),
                                ms_and_std(&before->ms, a), speed ? ": this rung " : "",
                                speed ? speed : "");
        }
        before = r;
    }
    return NULL;
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
    bool comparable = published_comparable(v->config, v->machine->gpu);
    published_read(&published, a);
    struct table t = make_table(v->ladder, &published, comparable, a);
    if (form->json) {
        json_print(make_json(v, &t), s);
        return;
    }
    table_form_print(form, &t, s);
    table_form_note(form,
                    arena_printf(a, "%s\n%s\n%s", formula_words(v->ladder, v->config, a),
                                 ceilings_words(v->machine, a), order_words[v->ladder->order]),
                    s);
    const char *ranks = ranks_words(v->config, a);
    if (ranks) table_form_note(form, ranks, s);
    if (v->ladder->peak_exceeded) table_form_note(form, LADDER_PEAK_EXCEEDED, s);
    const char *words = clock_words(v->ladder, a);
    if (words) table_form_note(form, words, s);
    const char *padding = ladder_view_padding(v->ladder, a);
    if (padding) table_form_note(form, padding, s);
    table_form_note(form, published_words(&published, comparable, a), s);
}
