#include "view/products_view.h"

#include "present/table_cells.h"
#include "present/table_form.h"

#include <string.h>

/* clang-format off */
#define COLUMNS(X) \
    X("inputs", "inputs", "types of the two inputs", TEXT, inputs_text(k, row.arena)) \
    X("sums", "sums", "type that sums are kept in", TEXT, number_formats[k->sum].name) \
    X("result", "result", "type of the result", TEXT, number_formats[k->result].name) \
    X("note", "", "what the row is", TEXT, k->note ? k->note : "") \
    X("error", "error", "relative to double precision, by norm", ERROR, true, x->error) \
    X("expected_error", "expected", "what rounding explains if one number is added after the other", ERROR, true, x->expected) \
    X("ms_median", "ms", "median time of the matmul", NUMBER, timed, 3, ms->median) \
    X("ms_std", "std", "standard deviation of the samples", STD, timed, ms) \
    X("gflop_per_s", "GFLOP/s", "FLOPs per second", FLOPS, timed, flops / ms->median * 1e3) \
    X("kernel", "kernel", "the kernel of the device; -: emulated on the CPU", TEXT, x->kernel)
/* clang-format on */
static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

static const char *inputs_text(const struct products_kind *k, struct arena *a)
{
    const char *x = number_formats[k->a].name, *y = number_formats[k->b].name;
    return k->a == k->b ? x : arena_printf(a, "%s x %s", x, y);
}

static void set_row(struct table_row row, const struct products_result *x, double flops)
{
    const struct products_kind *k = x->kind;
    const struct stats *ms = &x->time.total;
    bool timed = x->kernel && ms->median > 0;
    COLUMNS(TABLE_CELL)
}

void products_sheet(const struct products_run *r, struct sheet *s, struct arena *a)
{
    const int64_t *size = r->options->size;
    *s = (struct sheet){.name = "lab-products"};
    s->title = arena_printf(a, "One matmul, %lld x %lld x %lld: error and time in each format",
                            (long long)size[0], (long long)size[1], (long long)size[2]);
    struct table *t = &sheet_add(s, NULL, columns, COUNT_OF(columns), r->results, a)->table;
    if (!r->options->device.backend->host_memory) table_form_tera(t, a);
    double flops = 2.0 * (double)size[0] * (double)size[1] * (double)size[2];
    for (int i = 0; i < r->results; i++)
        set_row((struct table_row){t, i, 0, a}, &r->result[i], flops);
    sheet_note(s, arena_printf(a,
                               "Inputs are standard normals. Errors are relative to double "
                               "precision, by norm, over %lld x %lld elements of the result, and "
                               "include the rounding of the inputs.",
                               (long long)r->rows, (long long)r->columns));
    sheet_note(s,
               arena_printf(a,
                            "Expected: 0.4 sqrt(u_a^2 + u_b^2 + u_result^2 + u_sum^2 (K+1)/2), u "
                            "half the epsilon of a type that rounds, K = %lld. Kernels add in "
                            "several partial sums, so those in fp32 are more precise.",
                            (long long)size[2]));
    sheet_note(s, "Rows without a time are emulated, one FMA after the other: this device has no "
                  "kernel for them. Times are taken in turns; the tensors may be in a cache.");
}
