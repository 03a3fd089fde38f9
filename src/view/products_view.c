#include "view/products_view.h"

#include "present/table_cells.h"
#include "present/table_form.h"

#include <string.h>

/* clang-format off */
#define COLUMN_LIST(X) \
    X(COLUMN_INPUTS, "inputs", "inputs", "types of the two inputs", false) \
    X(COLUMN_SUMS, "sums", "sums", "type that sums are kept in", false) \
    X(COLUMN_RESULT, "result", "result", "type of the result", false) \
    X(COLUMN_NOTE, "note", "", "what the row is", false) \
    X(COLUMN_ERROR, "error", "error", "relative to double precision, by norm", true) \
    X(COLUMN_EXPECTED, "expected_error", "expected", "what rounding explains if one number is added after the other", true) \
    X(COLUMN_MS, "ms_median", "ms", "median time of the matmul", true) \
    X(COLUMN_STD, "ms_std", "std", "standard deviation of the samples", true) \
    X(COLUMN_FLOPS, "gflop_per_s", "GFLOP/s", "FLOPs per second", true) \
    X(COLUMN_KERNEL, "kernel", "kernel", "the kernel of the device; -: emulated on the CPU", false)
/* clang-format on */
enum { COLUMN_LIST(TABLE_ID) COLUMNS };
static const struct table_column columns[] = {COLUMN_LIST(TABLE_COLUMN)};

static const char *inputs_text(const struct products_kind *k, struct arena *a)
{
    const char *x = number_formats[k->a].name, *y = number_formats[k->b].name;
    return k->a == k->b ? x : arena_printf(a, "%s x %s", x, y);
}

static void set_row(struct table *t, int row, const struct products_run *r, struct arena *a)
{
    const struct products_result *x = &r->result[row];
    const struct products_kind *k = x->kind;
    const int64_t *size = r->options->size;
    table_set_text(t, row, COLUMN_INPUTS, inputs_text(k, a));
    table_set_text(t, row, COLUMN_SUMS, number_formats[k->sum].name);
    table_set_text(t, row, COLUMN_RESULT, number_formats[k->result].name);
    table_set_text(t, row, COLUMN_NOTE, k->note ? k->note : "");
    table_set_error(t, row, COLUMN_ERROR, x->error, a);
    table_set_error(t, row, COLUMN_EXPECTED, x->expected, a);
    if (!x->kernel) return;
    double ms = x->time.total.median;
    table_set_text(t, row, COLUMN_KERNEL, x->kernel);
    if (!(ms > 0)) return;
    table_set(t, row, COLUMN_MS, 3, ms, a);
    table_set_std(t, row, COLUMN_STD, &x->time.total, a);
    double flops = 2.0 * (double)size[0] * (double)size[1] * (double)size[2];
    table_form_set_flops(t, row, COLUMN_FLOPS, flops / ms * 1e3, a);
}

void products_sheet(const struct products_run *r, struct sheet *s, struct arena *a)
{
    const int64_t *size = r->options->size;
    *s = (struct sheet){.name = "lab-products"};
    s->title = arena_printf(a, "One matmul, %lld x %lld x %lld: error and time in each format",
                            (long long)size[0], (long long)size[1], (long long)size[2]);
    struct table *t = &sheet_add(s, NULL, columns, COLUMNS, r->results, a)->table;
    if (!r->options->device.backend->host_memory) table_form_tera(t, a);
    for (int i = 0; i < r->results; i++) set_row(t, i, r, a);
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
