/* strobe bench CONFIG: a training step beside its own matrix products, interleaved, with spread.
 * strobe bench PART: what parts of a step take alone. */
#include "base/file.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/str.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/planned.h"
#include "measure/bench_step.h"
#include "measure/noise.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct command parts[] = {
    {"bench kernels", cmd_bench_kernels, "[CONFIG] [--key=value ...]", "time every kernel that fits a call of a training step, winners beside losers"},
    {"bench attention", cmd_bench_attention, "[--T=64,128,...]", "time attention alone, slow at each rung and flash, over lengths of sequences"},
};
/* clang-format on */

enum { PAIRS_MOST = 1000000 };

static void show(void *user, int done)
{
    progress_show(user, done, "");
}

static void print_row(const char *what, const struct stats *s, const char *unit)
{
    printf("%-28s %9.3f %9.3f %9.3f %9.3f %9.3f  %s\n", what, s->median, s->mean, s->std, s->min,
           s->p95, unit);
}

static void print_text(const struct engine *e, const struct bench_step *b)
{
    double units = (double)(e->config->data.batch_size * e->model.config.block_size);
    const char *unit = e->model.def->unit;
    printf("%-28s %9s %9s %9s %9s %9s\n", "", "median", "mean", "std", "min", "p95");
    print_row("training step", &b->step, "ms");
    if (b->product_flops > 0) {
        print_row("its matrix products alone", &b->products, "ms");
        print_row("step / products", &b->ratio, "x");
        printf("%.3g GFLOP in products, %.0f GFLOP/s; ", b->product_flops * 1e-9,
               b->product_flops * 1e-6 / b->products.median);
    }
    printf("%.0f %s/s; first step %.1f ms, loss %.4f\n", units * 1e3 / b->step.median, unit,
           b->first_ms, b->loss);
}

static void print_json_row(const char *what, const struct stats *s)
{
    printf(
        "\"%s\":{\"n\":%d,\"median\":%.6g,\"mean\":%.6g,\"std\":%.6g,\"min\":%.6g,\"p95\":%.6g},",
        what, s->n, s->median, s->mean, s->std, s->min, s->p95);
}

static void print_json(const struct bench_step *b)
{
    printf("{\"v\":1,");
    print_json_row("step_ms", &b->step);
    if (b->product_flops > 0) {
        print_json_row("products_ms", &b->products);
        print_json_row("ratio", &b->ratio);
    }
    printf("\"product_flops\":%.9g,\"first_ms\":%.6g,\"loss\":%.9g}\n", b->product_flops,
           b->first_ms, b->loss);
}

static enum status measure(const struct config *c, int64_t vocab, int64_t warmup, int64_t steps,
                           bool json, struct arena *a)
{
    struct engine e;
    struct bench_step b;
    struct progress progress;
    TRY(noise_open(&e, c, vocab, a));
    progress_start(&progress, "bench", 0, warmup + steps);
    enum status st = bench_step_run(&e, (int)warmup, (int)steps, show, &progress, &b);
    progress_end(&progress);
    if (st == ST_OK && json)
        print_json(&b);
    else if (st == ST_OK)
        print_text(&e, &b);
    engine_close(&e);
    return st;
}

static const char *name_of(const struct command *part)
{
    return part->name + strlen("bench ");
}

/* A word that is nearly a part, and no file. */
static enum status check_word(const char *word)
{
    enum { NEAR = 2 };
    for (int i = 0; i < COUNT_OF(parts); i++)
        if (str_distance(word, name_of(&parts[i])) <= NEAR && !file_exists(word))
            return fail(ST_USAGE, "bench has no part %s; the nearest is %s", word,
                        name_of(&parts[i]));
    return ST_OK;
}

enum status cmd_bench(int argc, char **argv)
{
    for (int i = 0; i < COUNT_OF(parts) && argc > 0; i++)
        if (!strcmp(argv[0], name_of(&parts[i]))) return command_run(&parts[i], argc - 1, argv + 1);
    if (argc > 0) TRY(check_word(argv[0]));
    int64_t warmup = 5, steps = 50, vocab = 0;
    bool json = false;
    const struct opt options[] = {
        {"warmup", OPT_INT, &warmup, "N", "pairs that are not counted (5)"},
        {"steps", OPT_INT, &steps, "N", "pairs that are (50)"},
        {"vocab", OPT_INT, &vocab, "N", "size of the vocabulary (that of the data set)"},
        {"json", OPT_FLAG, &json, NULL, "for programs"},
        {0},
    };
    struct arena a = {0};
    struct config c;
    enum status st = ST_OK;
    TRY(opt_parse(options, &argc, argv, config_is_key));
    if (warmup < 0 || warmup > PAIRS_MOST || steps < 1 || steps > PAIRS_MOST)
        return fail(ST_USAGE, "--warmup is 0 to %d, --steps 1 to %d", PAIRS_MOST, PAIRS_MOST);
    TRY_OUT(st, command_read_config(&c, argc, argv, true, &a));
    TRY_OUT(st, model_check(&c));
    if (c.train.gradient_accumulation_steps != 1)
        TRY_OUT(st, fail(ST_USAGE, "bench times steps of one micro-step: add "
                                   "--gradient_accumulation_steps=1"));
    threads_set(c.plan.threads);
    TRY_OUT(st, planned_vocabulary(&c, vocab, &vocab, &a));
    TRY_OUT(st, measure(&c, vocab, warmup, steps, json, &a));
out:
    arena_release(&a);
    return st;
}
