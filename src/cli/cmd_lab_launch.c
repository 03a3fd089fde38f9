/* strobe lab launch: what it costs to start work on a device. */
#include "cli/command.h"
#include "cli/device.h"
#include "cli/output.h"
#include "view/launch_view.h"

static enum status run(struct launch_options *o, const struct output *output, struct arena *a)
{
    struct launch_run *r = ARENA_NEW(a, struct launch_run, 1);
    struct outcome x;
    o->each = outcome_share;
    o->user = &x;
    outcome_begin(&x, "lab launch", 1, &o->device);
    outcome_add(&x, launch_measure(o, r, a));
    if (outcome_end(&x)) launch_sheet(r, &x.sheet, a);
    return outcome_finish(&x, output, a);
}

enum status cmd_lab_launch(int argc, char **argv, struct arena *a)
{
    static const int64_t size_least = 16 << 10, size_most = INT64_C(1) << 34;
    const char *size = NULL;
    int64_t launches = LAUNCH_MOST;
    struct place place = {0};
    struct effort effort = {"samples", 20, 1000, 10, 1, 100000};
    struct output output = {.command = command_text("lab launch", argc, argv, a)};
    struct launch_options o = {.bytes = 64 << 20};
    const struct opt options[] = {
        DEVICE_OPTION(&place.device),
        {"launches", OPT_INT, &launches, "N",
         "launches, or operators, of a sample (default: 1000)"},
        {"size", OPT_TEXT, &size, "SIZE",
         "GPU: bytes that are copied in and out, all chunks together (default: 64MiB)"},
        {"threads", OPT_INT, &place.threads, "N",
         "threads of a CPU (default: all that this process may use)"},
        {"samples", OPT_INT, &effort.samples, "N",
         "at most this many timings of each row (default: 20)"},
        {"limit", OPT_INT, &effort.limit, "SECONDS",
         "about this much time for all timings together (default: 10)"},
        OUTPUT_OPTIONS(&output, "also write the bars as a picture"),
        {0},
    };
    TRY(command_options("lab launch", options, argc, argv));
    TRY(output_check(&output));
    TRY(effort_read(&effort, &o.samples, &o.limit_ms, NULL));
    if (launches < 1 || launches > LAUNCH_MOST)
        return fail(ST_USAGE, "--launches must be 1 to %d", LAUNCH_MOST);
    TRY(place_check(&place));
    if (size && (!str_read_bytes(size, &o.bytes) || o.bytes < size_least || o.bytes > size_most))
        return fail(ST_USAGE, "--size takes a size from 16KiB to 16GiB, as in 64MiB; found %s",
                    size);
    TRY(place_open(&place, &o.device));
    bool gpu = o.device.backend->texts != NULL;
    if (gpu ? place.threads != 0 : size != NULL)
        return fail(ST_USAGE, gpu ? "--threads is of a CPU; leave it out"
                                  : "--size is of copies to a GPU; leave it out");
    o.launches = (int)launches;
    return run(&o, &output, a);
}
