#include "view/kernels_view.h"

#include "base/str.h"
#include "view/ceilings.h"

#include <jansson.h>

/* clang-format off */
#define COLUMNS(X) \
    X("op", "operator", "what it computes", TEXT, op_def(c->op)->name) \
    X("shape", "shape", "M x N x K of a matmul, otherwise the largest tensor", TEXT, c->shape) \
    X("dtype", "type", "type of its first float input", TEXT, c->precision == MACHINE_TF32 ? "tf32" : dtype_name(c->dtype)) \
    X("calls_per_step", "calls", "calls in a training step", NUMBER, true, 0, (double)c->per_step) \
    X("kernel", "kernel", "kernel row", TEXT, r->kernel->variant) \
    X("in_plan", "plan", "yes: the kernel that training uses", TEXT, r->taken ? "yes" : NULL) \
    X("us_median", "µs", "median time of one call", NUMBER, ran, 4, 1e3 * r->ms.median) \
    X("us_std", "std", "standard deviation of the samples", NUMBER, ran && r->ms.n > 1, 2, 1e3 * r->ms.std) \
    X("samples", "n", "number of samples", NUMBER, ran, 0, r->ms.n) \
    X("order", "order", "fastest; the others beside it, by the rule of docs/MEASURING.md", TEXT, !ran ? NULL : r->fastest ? "fastest" : r->order.kind ? verdict_name(r->order.kind) : NULL) \
    X("us_per_step", "µs/step", "time of all such calls of a step", NUMBER, ran && r->taken, 4, 1e3 * c->ms_per_step) \
    X("gflop_per_s", "GFLOP/s", "FLOPs of the plan per second", FLOPS, ran, r->flops) \
    X("gb_per_s", "GB/s", "bytes of the plan per second: every input and output once", NUMBER, ran, 3, r->bytes * 1e-9) \
    X("ceiling", "ceiling", "matmul: the matmul peak; copy: the bandwidth of a copy of that size (on a GPU of a large copy)", TEXT, !ran ? NULL : r->by_bytes ? "copy" : "matmul") \
    X("share_percent", "% of it", "share of the ceiling that limits it", NUMBER, ran, 3, 100 * r->share) \
    X("note", "note", "why there is no time", TEXT, r->left_out)
/* clang-format on */

static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

static void set_row(struct table_row row, const struct bench_call *c, const struct bench_row *r)
{
    bool ran = !r->left_out;
    COLUMNS(TABLE_CELL)
}

static struct table make_table(const struct bench_kernels *k, bool gpu, struct arena *a)
{
    struct table t = table_new(columns, COUNT_OF(columns), k->rows, a);
    if (gpu) table_form_tera(&t, a);
    int at = 0;
    for (int i = 0; i < k->calls; i++)
        for (int row = 0; row < k->call[i].rows; row++)
            set_row((struct table_row){&t, at++, 0, a}, &k->call[i], &k->call[i].row[row]);
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

static struct summary summarize(const struct bench_kernels *k, const struct machine *m)
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
    struct summary sum = summarize(v->kernels, m);
    if (form->json) {
        json_print(make_json(v, &t, &sum), s);
        return;
    }
    table_form_print(form, &t, s);
    if (v->whole && sum.matmuls) note_matmuls(form, v->kernels, &sum, a, s);
    if (m->gpu) table_form_note(form, cache_note, s);
    table_form_note(form, arena_printf(a, "%s\n%s", v->words, ceilings_words(m, a)), s);
}
