#include "view/kernels_view.h"

#include "base/str.h"
#include "view/ceilings.h"

#include <jansson.h>

/* clang-format off */
#define COLUMN_LIST(X) \
    X(COLUMN_OP, "op", "operator", "what it computes", false) \
    X(COLUMN_SHAPE, "shape", "shape", "M x N x K of a matmul, otherwise the largest tensor", \
      false) \
    X(COLUMN_TYPE, "dtype", "type", "type of its first float input", false) \
    X(COLUMN_CALLS, "calls_per_step", "calls", "calls in a training step", true) \
    X(COLUMN_KERNEL, "kernel", "kernel", "kernel row", false) \
    X(COLUMN_TAKEN, "in_plan", "plan", "yes: the kernel that training uses", false) \
    X(COLUMN_US, "us_median", "µs", "median time of one call", true) \
    X(COLUMN_STD, "us_std", "std", "standard deviation of the samples", true) \
    X(COLUMN_SAMPLES, "samples", "n", "number of samples", true) \
    X(COLUMN_ORDER, "order", "order", \
      "fastest; the others beside it, by the rule of docs/MEASURING.md", false) \
    X(COLUMN_STEP_US, "us_per_step", "µs/step", "time of all such calls of a step", true) \
    X(COLUMN_GFLOPS, "gflop_per_s", "GFLOP/s", "FLOPs of the plan per second", true) \
    X(COLUMN_GBYTES, "gb_per_s", "GB/s", \
      "bytes of the plan per second: every input and output once", true) \
    X(COLUMN_BOUND, "ceiling", "ceiling", \
      "matmul: the matmul peak; copy: the bandwidth of a copy of that size (on a GPU of a " \
      "large copy)", false) \
    X(COLUMN_SHARE, "share_percent", "% of it", "share of the ceiling that limits it", true) \
    X(COLUMN_NOTE, "note", "note", "why there is no time", false)
/* clang-format on */

enum { COLUMN_LIST(TABLE_ID) COLUMNS };
static const struct table_column columns[] = {COLUMN_LIST(TABLE_COLUMN)};

static void set_row(struct table *t, int at, const struct bench_call *c, const struct bench_row *r,
                    struct arena *a)
{
    table_set_text(t, at, COLUMN_OP, op_def(c->op)->name);
    table_set_text(t, at, COLUMN_SHAPE, c->shape);
    bool tf32 = c->precision == MACHINE_TF32;
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
    if (r->fastest || r->order.kind)
        table_set_text(t, at, COLUMN_ORDER, r->fastest ? "fastest" : verdict_name(r->order.kind));
    if (r->taken) table_set(t, at, COLUMN_STEP_US, 4, 1e3 * c->ms_per_step, a);
    table_form_set_flops(t, at, COLUMN_GFLOPS, r->flops, a);
    table_set(t, at, COLUMN_GBYTES, 3, r->bytes * 1e-9, a);
    table_set(t, at, COLUMN_SHARE, 3, 100 * r->share, a);
    table_set_text(t, at, COLUMN_BOUND, r->by_bytes ? "copy" : "matmul");
}

static struct table make_table(const struct bench_kernels *k, bool gpu, struct arena *a)
{
    struct table t = table_new(columns, COLUMNS, k->rows, a);
    if (gpu) table_form_tera(&t, a);
    int at = 0;
    for (int i = 0; i < k->calls; i++)
        for (int row = 0; row < k->call[i].rows; row++)
            set_row(&t, at++, &k->call[i], &k->call[i].row[row], a);
    return t;
}

/* Sums over a step. */
struct summary {
    double all_ms;          /* all calls, with the kernels that the plan uses */
    double rows_ms;         /* the matmuls of them */
    int64_t matmuls;        /* number of matmuls */
    double matmuls_ms, std; /* the matmuls run back to back */
    double flops, share;    /* of the matmuls; share of the peak of their types, 0 to 1 */
};

static struct summary summarise(const struct bench_kernels *k, const struct machine *m)
{
    double steps = (double)k->micro_steps, ideal_ms = 0; /* each matmul at the peak of its type */
    struct summary s = {.matmuls = k->matmuls.kernels * k->micro_steps,
                        .matmuls_ms = steps * k->matmuls_ms.median,
                        .std = steps * k->matmuls_ms.std,
                        .flops = steps * k->matmuls.flops};
    for (int i = 0; i < k->calls; i++) {
        const struct bench_call *c = &k->call[i];
        s.all_ms += c->ms_per_step;
        if (!matmuls_include(c->op)) continue;
        const struct machine_peak *peak = machine_peak(m, c->precision);
        s.rows_ms += c->ms_per_step;
        if (peak) ideal_ms += c->cost.flops * (double)c->per_step / peak->flops * 1e3;
    }
    if (s.matmuls_ms > 0) s.share = ideal_ms / s.matmuls_ms;
    return s;
}

static void note_matmuls(const struct table_form *f, const struct bench_kernels *k,
                         const struct summary *sum, struct arena *a, struct str *s)
{
    char work[32];
    table_form_note(f,
                    arena_printf(a,
                                 "matmuls alone, per step: %lld calls, %s; back to back "
                                 "%.4g ms (median of %d, std %.2g), %s, %.0f %% of the peak; the "
                                 "medians above add up to %.4g ms",
                                 (long long)sum->matmuls, str_flops(work, sum->flops),
                                 sum->matmuls_ms, k->matmuls_ms.n, sum->std,
                                 ceilings_flops(sum->flops / (sum->matmuls_ms * 1e-3), a),
                                 100 * sum->share, sum->rows_ms),
                    s);
    table_form_note(
        f, arena_printf(a, "all kernels of a step, as selected by the plan: %.4g ms", sum->all_ms),
        s);
}

static json_t *make_json(const struct kernels_view *v, const struct table *t,
                         const struct summary *sum)
{
    json_t *j =
        json_pack("{s:i, s:s, s:o, s:o, s:f}", "v", 1, "config", v->words, "machine",
                  machine_json(v->machine), "rows", table_json(t), "ms_per_step", sum->all_ms);
    if (sum->matmuls)
        json_object_set_new(j, "products",
                            json_pack("{s:I, s:f, s:f, s:f, s:i, s:f, s:f, s:f}", "calls",
                                      (json_int_t)sum->matmuls, "flops", sum->flops, "ms_median",
                                      sum->matmuls_ms, "ms_std", sum->std, "samples",
                                      v->kernels->matmuls_ms.n, "ms_of_rows", sum->rows_ms,
                                      "flops_per_s", sum->flops / (sum->matmuls_ms * 1e-3),
                                      "share_percent", 100 * sum->share));
    return j;
}

static const char cache_note[] =
    "times are measured with events around calls in one captured graph; the calls use up to 64 "
    "copies of the inputs\nand outputs in turn, so that data comes from memory and not from L2";

void kernels_view_print(const struct kernels_view *v, const struct table_form *form, struct str *s,
                        struct arena *a)
{
    const struct machine *m = v->machine;
    struct table t = make_table(v->kernels, m->gpu, a);
    struct summary sum = summarise(v->kernels, m);
    if (form->json) {
        json_print(make_json(v, &t, &sum), s);
        return;
    }
    table_form_print(form, &t, s);
    if (v->whole && sum.matmuls) note_matmuls(form, v->kernels, &sum, a, s);
    if (m->gpu) table_form_note(form, cache_note, s);
    table_form_note(form, arena_printf(a, "%s\n%s", v->words, ceilings_words(m, a)), s);
}
