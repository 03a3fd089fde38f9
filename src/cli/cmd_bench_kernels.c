/* strobe bench kernels: times every kernel that accepts a call of a training step. */
#include "cli/command.h"
#include "cli/device.h"
#include "cli/output.h"
#include "cli/planned.h"
#include "measure/random_step.h"
#include "view/ceilings.h"
#include "view/kernels_view.h"

#include <stdio.h>

/* The model without a CONFIG: nanoGPT's laptop model, configs/shakespeare_char_cpu.conf. */
static const char *const laptop[] = {"n_layer=4",     "n_head=4",      "n_embd=128",
                                     "block_size=64", "batch_size=12", "dataset=shakespeare_char"};

static void show(void *user, int done, int rows, const struct bench_call *c)
{
    struct progress *p = user;
    char text[128];
    if (!p->what) progress_start(p, "bench kernels", 0, rows);
    snprintf(text, sizeof text, "%s %s", op_def(c->op)->name, c->shape);
    progress_show(p, done, text);
}

static enum status measure(const struct config *c, int64_t vocab,
                           const struct bench_kernels_options *o, struct bench_kernels *ret,
                           struct arena *a)
{
    struct engine e;
    struct progress progress = {0};
    struct bench_kernels_options shown = *o;
    shown.each = show;
    shown.user = &progress;
    TRY(random_step_open(&e, c, vocab, NULL, a));
    enum status st = bench_kernels_run(&e, &shown, ret, a);
    if (progress.what) progress_end(&progress);
    engine_close(&e);
    return st;
}

/* Reads CONFIG, or the built-in model, and then the overrides. */
static enum status read_config(struct config *c, int argc, char **argv, struct arena *a)
{
    bool named = false;
    for (int i = 0; i < argc; i++) named |= argv[i][0] != '-';
    char **word = ARENA_NEW(a, char *, argc + COUNT_OF(laptop));
    int words = 0;
    for (int i = 0; i < COUNT_OF(laptop) && !named; i++) word[words++] = arena_strdup(a, laptop[i]);
    for (int i = 0; i < argc; i++) word[words++] = argv[i];
    TRY(command_read_config(c, words, word, false, a));
    TRY(model_check(c));
    return machine_choose(c, NULL, true, a);
}

static const char *words_of(const struct config *c, int64_t vocab, struct arena *a)
{
    static const char *const of_model[] = {"n_layer", "n_head", "n_embd", "block_size"};
    static const char *const keys[] = {"batch_size", "fusion", "flash", "dtype"};
    const char *words = arena_printf(a, "model=%s", model_words[c->model.kind]);
    for (int i = 0; i < COUNT_OF(of_model); i++)
        if (model_reads(&c->model, of_model[i]))
            words = arena_printf(a, "%s %s=%s", words, of_model[i],
                                 config_value_text(c, of_model[i], a));
    for (int i = 0; i < COUNT_OF(keys); i++)
        words = arena_printf(a, "%s %s=%s", words, keys[i], config_value_text(c, keys[i], a));
    return vocab ? arena_printf(a, "%s vocabulary=%lld", words, (long long)vocab) : words;
}

static enum status run(int argc, char **argv, const struct table_form *f, int64_t vocab,
                       const struct bench_kernels_options *o, struct arena *a)
{
    struct bench_kernels_options with_peaks = *o;
    struct config c;
    struct device device;
    struct machine m;
    struct bench_kernels k;
    TRY(read_config(&c, argc, argv, a));
    TRY(planned_vocabulary(&c, vocab, &vocab, a));
    TRY(device_prepare(&c, &device));
    TRY(random_step_check(&c, vocab, EXTENT_STEP));
    TRY(ceilings_get(&m, &device, a));
    with_peaks.machine = &m;
    TRY(measure(&c, vocab, &with_peaks, &k, a));
    if (!k.calls)
        return fail(
            ST_USAGE,
            "a step of this configuration does not use %s; leave --op out to see what it uses",
            op_def(o->op)->name);
    struct str s = {0};
    struct kernels_view view = {&k, &m, words_of(&c, vocab, a), o->op == OP_COUNT};
    kernels_view_print(&view, f, &s, a);
    command_print(&s);
    return ST_OK;
}

enum status cmd_bench_kernels(int argc, char **argv, struct arena *a)
{
    struct table_form form = {0};
    struct bench_kernels_options o = {.samples = 0};
    const char *op = NULL;
    struct effort effort = {"samples", EFFORT_OPEN, 100000, 90, 0, 1000000};
    int64_t vocab = 0;
    const struct opt options[] = {
        {"op", OPT_TEXT, &op, "NAME", "only calls of this operator"},
        {"samples", OPT_INT, &effort.samples, "N",
         "timings of each kernel (default: 20; more while the order is uncertain)"},
        {"limit", OPT_INT, &effort.limit, "SECONDS",
         "time for all kernels together; slow ones get fewer samples (default: 90)"},
        {"vocab", OPT_INT, &vocab, "N", "size of the vocabulary (default: of the data set)"},
        TABLE_FORM_OPTIONS(&form),
        {0},
    };
    TRY(opt_parse(options, &argc, argv, config_is_key));
    TRY(table_form_check(&form));
    TRY(command_find_op(op, &o.op));
    TRY(effort_read(&effort, &o.samples, &o.limit_ms, &o.go_on));
    return run(argc, argv, &form, vocab, &o, a);
}
