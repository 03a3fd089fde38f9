/* strobe bench kernels: every kernel that fits a call of a training step, timed on what training gives it. */
#include "backend/kernel.h"
#include "base/log.h"
#include "base/str.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/planned.h"
#include "measure/bench_kernels.h"
#include "measure/noise.h"
#include "present/table_form.h"
#include "train/device.h"
#include "view/ceilings.h"

#include <jansson.h>
#include <stdio.h>
#include <strings.h>

enum { SAMPLES_MOST = 100000, SECONDS_MOST = 1000000 };

/* What stands where no configuration is named: nanoGPT's laptop model, configs/shakespeare_char_cpu.conf. */
static const char *const laptop[] = {"n_layer=4",     "n_head=4",      "n_embd=128",
                                     "block_size=64", "batch_size=12", "dataset=shakespeare_char"};

enum {
    COLUMN_OP,
    COLUMN_SHAPE,
    COLUMN_TYPE,
    COLUMN_CALLS,
    COLUMN_KERNEL,
    COLUMN_TAKEN,
    COLUMN_US,
    COLUMN_STD,
    COLUMN_SAMPLES,
    COLUMN_STEP_US,
    COLUMN_GFLOPS,
    COLUMN_GBYTES,
    COLUMN_BOUND,
    COLUMN_SHARE,
    COLUMN_NOTE,
    COLUMNS
};

static const struct table_column columns[COLUMNS] = {
    [COLUMN_OP] = {"op", "operator", "what it computes", false},
    [COLUMN_SHAPE] = {"shape", "shape", "M x N x K of a product, else the largest tensor", false},
    [COLUMN_TYPE] = {"dtype", "type", "of its first float input", false},
    [COLUMN_CALLS] = {"calls_per_step", "calls", "how often a training step runs it", true},
    [COLUMN_KERNEL] = {"kernel", "kernel", "the row of the table of kernels", false},
    [COLUMN_TAKEN] = {"in_plan", "plan", "the row that training takes", false},
    [COLUMN_US] = {"us_median", "µs", "median time of one call", true},
    [COLUMN_STD] = {"us_std", "std", "standard deviation of the samples", true},
    [COLUMN_SAMPLES] = {"samples", "n", "samples taken", true},
    [COLUMN_STEP_US] = {"us_per_step", "µs/step", "of all such calls of a step", true},
    [COLUMN_GFLOPS] = {"gflop_per_s", "GFLOP/s", "arithmetic, as the plan counts it", true},
    [COLUMN_GBYTES] = {"gb_per_s", "GB/s", "every input and output once, as the plan counts", true},
    [COLUMN_SHARE] = {"share_percent", "% of it", "how near it comes to the ceiling that is nearer",
                      true},
    [COLUMN_BOUND] = {"ceiling", "ceiling",
                      "product: the peak of products; copy: what a copy of that size moves, on a "
                      "GPU a large one",
                      false},
    [COLUMN_NOTE] = {"note", "note", "why there is no time", false},
};

static void set_row(struct table *t, int at, const struct bench_call *c, const struct bench_row *r,
                    struct arena *a)
{
    table_set_text(t, at, COLUMN_OP, op_def(c->op)->name);
    table_set_text(t, at, COLUMN_SHAPE, c->shape);
    bool tf32 = c->products == MACHINE_TF32;
    table_set_text(t, at, COLUMN_TYPE, tf32 ? "tf32" : dtype_name(c->dtype));
    table_set(t, at, COLUMN_CALLS, 0, (double)c->per_step, a);
    table_set_text(t, at, COLUMN_KERNEL, r->kernel->variant);
    if (r->taken) table_set_text(t, at, COLUMN_TAKEN, "yes");
    if (r->left_out) {
        table_set_text(t, at, COLUMN_NOTE, r->left_out);
        return;
    }
    table_set(t, at, COLUMN_US, 4, 1e3 * r->ms.median, a);
    if (r->ms.n > 1) table_set(t, at, COLUMN_STD, 2, 1e3 * r->ms.std, a);
    table_set(t, at, COLUMN_SAMPLES, 0, r->ms.n, a);
    if (r->taken) table_set(t, at, COLUMN_STEP_US, 4, 1e3 * c->ms_per_step, a);
    table_form_set_flops(t, at, COLUMN_GFLOPS, r->flops, a);
    table_set(t, at, COLUMN_GBYTES, 3, r->bytes * 1e-9, a);
    table_set(t, at, COLUMN_SHARE, 3, 100 * r->share, a);
    table_set_text(t, at, COLUMN_BOUND, r->by_bytes ? "copy" : "product");
}

static struct table make_table(const struct bench_kernels *k, bool gpu, struct arena *a)
{
    struct table t = {.column = columns, .columns = COLUMNS, .rows = k->rows};
    if (gpu) table_form_tera(&t, a);
    t.cell = ARENA_NEW(a, struct table_cell, k->rows * COLUMNS);
    int at = 0;
    for (int i = 0; i < k->calls; i++)
        for (int row = 0; row < k->call[i].rows; row++)
            set_row(&t, at++, &k->call[i], &k->call[i].row[row], a);
    return t;
}

/* Of a whole step. */
struct summary {
    double all_ms;           /* every call, by the row that the plan takes */
    double rows_ms;          /* those that are products */
    int64_t products;        /* how many they are */
    double products_ms, std; /* the products, one after the other */
    double flops, share;     /* theirs: in all; of the peak of their types, 0 ... 1 */
};

static struct summary summarise(const struct bench_kernels *k, const struct machine *m)
{
    double steps = (double)k->micro_steps, ideal_ms = 0; /* each product at the peak of its type */
    struct summary s = {.products = k->products.kernels * k->micro_steps,
                        .products_ms = steps * k->products_ms.median,
                        .std = steps * k->products_ms.std,
                        .flops = steps * k->products.flops};
    for (int i = 0; i < k->calls; i++) {
        const struct bench_call *c = &k->call[i];
        s.all_ms += c->ms_per_step;
        if (!products_include(c->op)) continue;
        const struct machine_peak *peak = machine_peak(m, c->products);
        s.rows_ms += c->ms_per_step;
        if (peak) ideal_ms += c->cost.flops * (double)c->per_step / peak->flops * 1e3;
    }
    if (s.products_ms > 0) s.share = ideal_ms / s.products_ms;
    return s;
}

static void note_products(const struct table_form *f, const struct bench_kernels *k,
                          const struct summary *sum, struct arena *a, struct str *s)
{
    table_form_note(f,
                    arena_printf(a,
                                 "products alone, a step: %lld calls, %.4g GFLOP; one after the "
                                 "other %.4g ms (median of %d, std %.2g), %s, %.0f %% of the "
                                 "peak; the medians above add up to %.4g ms",
                                 (long long)sum->products, sum->flops * 1e-9, sum->products_ms,
                                 k->products_ms.n, sum->std,
                                 ceilings_flops(sum->flops / (sum->products_ms * 1e-3), a),
                                 100 * sum->share, sum->rows_ms),
                    s);
    table_form_note(
        f, arena_printf(a, "all kernels of a step, as the plan takes them: %.4g ms", sum->all_ms),
        s);
}

static json_t *make_json(const struct bench_kernels *k, const struct machine *m,
                         const struct table *t, const struct summary *sum, const char *config)
{
    json_t *j = json_pack("{s:i, s:s, s:o, s:o, s:f}", "v", 1, "config", config, "machine",
                          machine_json(m), "rows", table_json(t), "ms_per_step", sum->all_ms);
    if (sum->products)
        json_object_set_new(j, "products",
                            json_pack("{s:I, s:f, s:f, s:f, s:i, s:f, s:f, s:f}", "calls",
                                      (json_int_t)sum->products, "flops", sum->flops, "ms_median",
                                      sum->products_ms, "ms_std", sum->std, "samples",
                                      k->products_ms.n, "ms_of_rows", sum->rows_ms, "flops_per_s",
                                      sum->flops / (sum->products_ms * 1e-3), "share_percent",
                                      100 * sum->share));
    return j;
}

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
    TRY(noise_open(&e, c, vocab, a));
    enum status st = bench_kernels_run(&e, &shown, ret, a);
    if (progress.what) progress_end(&progress);
    engine_close(&e);
    return st;
}

static enum status find_op(const char *name, enum op *ret_op)
{
    *ret_op = OP_COUNT;
    if (!name) return ST_OK;
    for (int op = 0; op < OP_COUNT; op++)
        if (strcasecmp(op_def((enum op)op)->name, name) == 0) {
            *ret_op = (enum op)op;
            return ST_OK;
        }
    return fail(ST_USAGE, "there is no operator %s; docs/OPS.md lists them", name);
}

/* The built-in model, over which the words go. */
static enum status read_config(struct config *c, int argc, char **argv, struct arena *a)
{
    bool named = false;
    for (int i = 0; i < argc; i++) named |= argv[i][0] != '-';
    char **word = ARENA_NEW(a, char *, argc + COUNT_OF(laptop));
    int words = 0;
    for (int i = 0; i < COUNT_OF(laptop) && !named; i++) word[words++] = arena_strdup(a, laptop[i]);
    for (int i = 0; i < argc; i++) word[words++] = argv[i];
    TRY(command_read_config(c, words, word, false, a));
    return model_check(c);
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

static const char cache_note[] =
    "times by the device's events around runs in one recording; copies of the inputs and outputs "
    "take turns, up to 64 of\nthem, so that what they hold comes from memory and not from L2";

static enum status run(int argc, char **argv, const struct table_form *f, int64_t vocab,
                       const struct bench_kernels_options *o, struct arena *a)
{
    struct bench_kernels_options against = *o;
    struct config c;
    struct device device;
    struct machine m;
    struct bench_kernels k;
    TRY(read_config(&c, argc, argv, a));
    TRY(planned_vocabulary(&c, vocab, &vocab, a));
    threads_set(c.plan.threads);
    TRY(isa_limit(c.plan.isa));
    TRY(device_of(&c, &device));
    TRY(noise_check(&c, vocab));
    TRY(ceilings_get(&m, &device, a));
    against.machine = &m;
    TRY(measure(&c, vocab, &against, &k, a));
    if (!k.calls)
        return fail(ST_USAGE, "a step of this configuration has no %s", op_def(o->op)->name);
    struct table t = make_table(&k, m.gpu, a);
    struct summary sum = summarise(&k, &m);
    struct str s = {0};
    const char *words = words_of(&c, vocab, a);
    if (f->json) {
        json_print(make_json(&k, &m, &t, &sum, words), &s);
    } else {
        table_form_print(f, &t, &s);
        if (o->op == OP_COUNT && sum.products) note_products(f, &k, &sum, a, &s);
        if (m.gpu) table_form_note(f, cache_note, &s);
        table_form_note(f, arena_printf(a, "%s\n%s", words, ceilings_words(&m, a)), &s);
    }
    fputs(str_text(&s), stdout);
    str_release(&s);
    return ST_OK;
}

enum status cmd_bench_kernels(int argc, char **argv)
{
    struct table_form form = {0};
    struct bench_kernels_options o = {.samples = 0};
    const char *op = NULL;
    int64_t samples = 20, limit = 90, vocab = 0;
    const struct opt options[] = {
        {"op", OPT_TEXT, &op, "NAME", "only calls of this operator"},
        {"samples", OPT_INT, &samples, "N", "of each kernel; the median counts (20)"},
        {"limit", OPT_INT, &limit, "SECONDS",
         "for all together: slow kernels get fewer samples (90)"},
        {"vocab", OPT_INT, &vocab, "N", "size of the vocabulary (that of the data set)"},
        TABLE_FORM_OPTIONS(&form),
        {0},
    };
    TRY(opt_parse(options, &argc, argv, config_is_key));
    TRY(table_form_check(&form));
    TRY(find_op(op, &o.op));
    if (samples < 1 || samples > SAMPLES_MOST || limit < 0 || limit > SECONDS_MOST)
        return fail(ST_USAGE, "--samples is 1 to %d, --limit 0 to %d", SAMPLES_MOST, SECONDS_MOST);
    o.samples = (int)samples;
    o.limit_ms = 1e3 * (double)limit;
    struct arena a = {0};
    enum status st = run(argc, argv, &form, vocab, &o, &a);
    arena_release(&a);
    return st;
}
