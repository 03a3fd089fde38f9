/* strobe lab occupancy: what more warps on a multiprocessor are worth. */
#include "base/opt.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/device.h"
#include "cli/lab_output.h"
#include "view/sweep_view.h"

enum { SAMPLES = 20, SAMPLES_MOST = 1000, LIMIT = 10, LIMIT_MOST = 100000 };

static enum status finish(const struct sweep_run *r, const struct lab_output *o,
                          const char *command, struct load *load, struct arena *a)
{
    struct sheet s;
    struct str curves = {0};
    const struct lab_origin from = {&r->options->device, command, load_others(load)};
    sweep_sheet(r, &s, a);
    TRY(lab_output_finish(o, &from, &s, NULL, a));
    if (!o->form.json && !o->form.csv && !o->form.markdown) {
        str_append(&curves, "\n");
        sweep_text(r, &curves, a);
        command_print(&curves);
    }
    return ST_OK;
}

static enum status run(struct sweep_options *o, const struct lab_output *output,
                       const char *command, struct arena *a)
{
    struct sweep_run *r = ARENA_NEW(a, struct sweep_run, 1);
    struct lab_series s;
    o->each = lab_series_share;
    o->user = &s;
    lab_series_begin(&s, "lab occupancy", 1);
    lab_series_add(&s, sweep_run(o, r, a));
    lab_series_end(&s);
    return lab_series_status(&s, s.done ? finish(r, output, command, &s.load, a) : ST_OK);
}

enum status cmd_lab_occupancy(int argc, char **argv)
{
    const char *device = NULL, *size = NULL;
    int64_t samples = SAMPLES, limit = LIMIT;
    struct lab_output output = {0};
    struct sweep_options o = {0};
    const struct opt options[] = {
        {"device", OPT_TEXT, &device, "NAME", "cuda or cuda:N (the first GPU)"},
        {"size", OPT_TEXT, &size, "SIZE",
         "bytes that a launch reads, as in 256MiB (16 times the last cache)"},
        {"samples", OPT_INT, &samples, "N", "timings of each row, at most (20)"},
        {"limit", OPT_INT, &limit, "SECONDS", "time for all timings together (10)"},
        {"svg", OPT_TEXT, &output.svg, "FILE", "also write the curves as a picture"},
        {"save", OPT_TEXT, &output.save, "FILE", "write the result, for strobe report"},
        TABLE_FORM_OPTIONS(&output.form),
        {0},
    };
    static const int64_t size_least = 4 << 10, size_most = INT64_C(1) << 36;
    struct arena a = {0};
    const char *command = command_text("lab occupancy", argc, argv, &a);
    enum status st = opt_parse(options, &argc, argv, NULL);
    if (st == ST_OK && argc)
        st = fail(ST_USAGE, "lab occupancy takes only options; found %s", argv[0]);
    if (st == ST_OK) st = lab_output_check(&output);
    if (st == ST_OK && (samples < 1 || samples > SAMPLES_MOST || limit < 1 || limit > LIMIT_MOST))
        st = fail(ST_USAGE, "--samples must be 1 to %d, and --limit 1 to %d", SAMPLES_MOST,
                  LIMIT_MOST);
    if (st == ST_OK && size &&
        (!str_read_bytes(size, &o.bytes) || o.bytes < size_least || o.bytes > size_most))
        st = fail(ST_USAGE, "--size takes a size from 4KiB to 64GiB, as in 256MiB; found %s", size);
    if (st == ST_OK) st = device_of_word(device, &o.device);
    o.samples = (int)samples;
    o.limit_ms = 1e3 * (double)limit;
    if (st == ST_OK) st = run(&o, &output, command, &a);
    arena_release(&a);
    return st;
}
