/* strobe lab occupancy: what more warps on a multiprocessor are worth. */
#include "cli/command.h"
#include "cli/device.h"
#include "cli/output.h"
#include "view/sweep_view.h"

static enum status run(struct sweep_options *o, const struct output *output, struct arena *a)
{
    struct sweep_run *r = ARENA_NEW(a, struct sweep_run, 1);
    struct outcome x;
    o->each = outcome_share;
    o->user = &x;
    outcome_begin(&x, "lab occupancy", 1, &o->device);
    outcome_add(&x, sweep_run(o, r, a));
    if (outcome_end(&x)) {
        sweep_sheet(r, &x.sheet, a);
        sweep_text(r, &x.text, a);
    }
    return outcome_finish(&x, output, a);
}

enum status cmd_lab_occupancy(int argc, char **argv, struct arena *a)
{
    static const int64_t size_least = 4 << 10, size_most = INT64_C(1) << 36;
    const char *device = NULL, *size = NULL;
    struct effort effort = {"samples", 20, 1000, 10, 1, 100000};
    struct output output = {.command = command_text("lab occupancy", argc, argv, a)};
    struct sweep_options o = {0};
    const struct opt options[] = {
        {"device", OPT_TEXT, &device, "NAME", "cuda or cuda:N (default: the first GPU)"},
        {"size", OPT_TEXT, &size, "SIZE",
         "bytes that a launch reads, as in 256MiB (default: 16 times the last cache)"},
        {"samples", OPT_INT, &effort.samples, "N",
         "at most this many timings of each row (default: 20)"},
        {"limit", OPT_INT, &effort.limit, "SECONDS", "time for all timings together (default: 10)"},
        OUTPUT_OPTIONS(&output, "also write the curves as a picture"),
        {0},
    };
    TRY(command_options("lab occupancy", options, argc, argv));
    TRY(output_check(&output));
    TRY(effort_read(&effort, &o.samples, &o.limit_ms, NULL));
    if (size && (!str_read_bytes(size, &o.bytes) || o.bytes < size_least || o.bytes > size_most))
        return fail(ST_USAGE, "--size takes a size from 4KiB to 64GiB, as in 256MiB; found %s",
                    size);
    TRY(device_of_word(device, &o.device));
    return run(&o, &output, a);
}
