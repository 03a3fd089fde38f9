#include "view/ladder_view.h"

#include "base/str.h"
#include "view/ceilings.h"
#include "view/published.h"

#include <jansson.h>
#include <string.h>

/* clang-format off */
#define COLUMNS(X) \
    X("rung", "rung", "what this rung adds", TEXT, r->name) \
    X("differs", "differs by", "keys that differ from the previous rung", TEXT, r->differs) \
    X("ms_median", "ms", "median time of a training step", NUMBER, ran, 4, r->ms.median) \
    X("ms_std", "std", "standard deviation", STD, ran, &r->ms) \
    X("steps", "n", "measured steps", NUMBER, ran, 0, r->ms.n) \
    X("tokens_per_s", "tokens/s", "tokens per second, from the median", COUNT, ran, r->tokens_per_s) \
    X("times_before", "x before", "speedup over the last rung that ran", NUMBER, judged && r->speed.how != JUDGED_SAME_PLAN, 3, r->times_before) \
    X("verdict", "verdict", "whether it is faster than the last rung that ran, by the rule of docs/MEASURING.md", TEXT, judged ? judge_name(&r->speed) : NULL) \
    X("times_first", "x first", "speedup over the first rung", NUMBER, ran, 3, r->times_first) \
    X("memory_bytes", "memory", "peak memory of the plan", BYTES, ran, (int64_t)r->facts.total) \
    X("taken_bytes", "taken", "GPU memory in use, as the driver reports it", BYTES, ran && r->taken, r->taken) \
    X("kernels_per_step", "kernels", "nodes of the plan that a step runs", NUMBER, ran, 0, r->facts.kernels) \
    X("launches_per_step", "launches", "GPU kernels of a step; a node may launch several", NUMBER, ran && r->started, 0, (double)r->started) \
    X("dtype", "peak of", "type of its matmuls", TEXT, ran ? machine_precision_name(r->precision) : NULL) \
    X("mfu_percent", "MFU %", "6 N + 12 L C T FLOPs per token, as a share of that peak", NUMBER, ran && r->mfu > 0, 3, 100 * r->mfu) \
    X("plan_percent", "plan %", "FLOPs of the plan, as a share of that peak", NUMBER, ran && r->plan_share > 0, 3, 100 * r->plan_share) \
    X("product_error", "error", "of one product of that type, 128 x 128 x 768, of normals: root mean square, relative", ERROR, ran && r->error > 0, r->error) \
    X("first_loss", "first loss", "loss of the first step, for the same batch and weights", NUMBER, ran, 5, r->loss) \
    X("clock_mhz", "MHz", "mean clock of the device during the rung", NUMBER, sampled && mhz > 0, 4, mhz) \
    X("power_w", "W", "mean power of the device during the rung", NUMBER, sampled && watt > 0, 3, watt) \
    X("throttled_percent", "slowed %", "share of the time in which power, heat or another limit lowered the clock", NUMBER, sampled && r->gauges.throttled >= 0, 3, 100 * r->gauges.throttled) \
    X("note", "note", "why the rung did not run", TEXT, r->reason)
/* clang-format on */

static void set_rung(struct table_row row, const struct ladder_rung *r)
{
    bool ran = !r->reason, judged = ran && r->times_before > 0;
    bool sampled = ran && gauge_is_enough(&r->gauges);
    double mhz = r->gauges.value[GAUGE_CLOCK].mean, watt = r->gauges.value[GAUGE_POWER].mean;
    COLUMNS(TABLE_CELL)
}

struct table ladder_table(const struct ladder *l, const struct published *p, bool comparable,
                          struct arena *a)
{
    static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};
    enum { OWN = COUNT_OF(columns) };
    struct table_column *column = ARENA_NEW(a, struct table_column, OWN + p->sources);
    memcpy(column, columns, sizeof columns);
    published_columns(p, comparable, &column[OWN], a);
    struct table t = table_new(column, OWN + p->sources, l->rungs, a);
    for (int i = 0; i < t.rows; i++) {
        set_rung((struct table_row){&t, i, 0, a}, &l->rung[i]);
        published_set(p, comparable, l->rung[i].name, &t, i, OWN, a);
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
    struct table t = ladder_table(v->ladder, &published, comparable, a);
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
