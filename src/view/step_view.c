#include "view/step_view.h"

#include "base/load.h"
#include "base/log.h"
#include "base/str.h"
#include "bench/bench_step.h"
#include "measure/random_step.h"

#include <stdio.h>

static void show_progress(void *user, int done)
{
    progress_show(user, done, "");
}

static void print_row(const char *what, const struct stats *s, const char *unit)
{
    char std[32] = "-"; /* one sample has none */
    if (s->n > 1) snprintf(std, sizeof std, "%.3f", s->std);
    printf("%-28s %9.3f %9.3f %9s %9.3f %9.3f  %s\n", what, s->median, s->mean, std, s->min, s->p95,
           unit);
}

static void print_text(const struct engine *e, const struct bench_step *b)
{
    const struct config *c = e->program.config;
    double units = (double)(c->data.batch_size * c->train.gradient_accumulation_steps *
                            e->program.model.config.block_size);
    char work[32];
    const char *unit = e->program.model.def->unit;
    printf("%-28s %9s %9s %9s %9s %9s\n", "", "median", "mean", "std", "min", "p95");
    print_row("training step", &b->step, "ms");
    if (b->matmul_flops > 0) {
        print_row("its matmuls alone", &b->matmuls, "ms");
        print_row("step / matmuls", &b->ratio, "x");
        char rate[32];
        printf("%s in matmuls, %s/s; ", str_flops(work, b->matmul_flops),
               str_flops(rate, b->matmul_flops * 1e3 / b->matmuls.median));
    }
    printf("%.0f %s/s; first step %.1f ms, loss %s\n", units * 1e3 / b->step.median, unit,
           b->first_ms, str_loss(work, b->loss));
}

static void print_json_row(const char *what, const struct stats *s)
{
    char std[32] = "null"; /* one sample has none */
    if (s->n > 1) snprintf(std, sizeof std, "%.6g", s->std);
    printf("\"%s\":{\"n\":%d,\"median\":%.6g,\"mean\":%.6g,\"std\":%s,\"min\":%.6g,\"p95\":%.6g},",
           what, s->n, s->median, s->mean, std, s->min, s->p95);
}

static void print_json(const struct bench_step *b)
{
    printf("{\"v\":1,");
    print_json_row("step_ms", &b->step);
    if (b->matmul_flops > 0) {
        print_json_row("products_ms", &b->matmuls);
        print_json_row("ratio", &b->ratio);
    }
    printf("\"product_flops\":%.9g,\"first_ms\":%.6g,\"loss\":%.9g}\n", b->matmul_flops,
           b->first_ms, b->loss);
}

enum status step_view_run(const struct config *c, int64_t vocab, int warmup, int steps, bool json,
                          struct arena *a)
{
    struct engine e;
    struct bench_step b;
    struct progress progress;
    TRY(random_step_open(&e, c, vocab, NULL, a));
    struct load load = load_start();
    progress_start(&progress, "bench", 0, warmup + steps);
    enum status st = bench_step_run(&e, warmup, steps, show_progress, &progress, &b);
    progress_end(&progress);
    load_warn(load_others(&load));
    if (st == ST_OK && json)
        print_json(&b);
    else if (st == ST_OK)
        print_text(&e, &b);
    engine_close(&e);
    return st;
}
