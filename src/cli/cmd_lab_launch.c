/* strobe lab launch: what it costs to start work on a device. */
#include "base/opt.h"
#include "base/str.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/device.h"
#include "cli/lab_output.h"
#include "view/launch_view.h"

enum { SAMPLES = 20, SAMPLES_MOST = 1000, LIMIT = 10, LIMIT_MOST = 100000, THREADS_MOST = 4096 };

static enum status finish(const struct launch_run *r, const struct lab_output *o,
                          const char *command, struct load *load, struct arena *a)
{
    struct sheet s;
    const struct lab_origin from = {&r->options->device, command, load_others(load)};
    launch_sheet(r, &s, a);
    return lab_output_finish(o, &from, &s, NULL, a);
}

static enum status run(struct launch_options *o, const struct lab_output *output,
                       const char *command, struct arena *a)
{
    struct launch_run *r = ARENA_NEW(a, struct launch_run, 1);
    struct lab_series s;
    o->each = lab_series_share;
    o->user = &s;
    lab_series_begin(&s, "lab launch", 1);
    lab_series_add(&s, launch_measure(o, r, a));
    lab_series_end(&s);
    return lab_series_status(&s, s.done ? finish(r, output, command, &s.load, a) : ST_OK);
}

enum status cmd_lab_launch(int argc, char **argv)
{
    const char *device = NULL, *size = NULL;
    int64_t launches = LAUNCH_MOST, samples = SAMPLES, limit = LIMIT, threads = 0;
    struct lab_output output = {0};
    struct launch_options o = {.bytes = 64 << 20};
    const struct opt options[] = {
        DEVICE_OPTION(&device),
        {"launches", OPT_INT, &launches, "N", "launches, or operators, of a sample (1000)"},
        {"size", OPT_TEXT, &size, "SIZE",
         "GPU: bytes that are copied in and out, all chunks together (64MiB)"},
        {"threads", OPT_INT, &threads, "N",
         "threads of a CPU (default: all that this process may use)"},
        {"samples", OPT_INT, &samples, "N", "timings of each row, at most (20)"},
        {"limit", OPT_INT, &limit, "SECONDS", "time for all timings together, about (10)"},
        {"svg", OPT_TEXT, &output.svg, "FILE", "also write the bars as a picture"},
        {"save", OPT_TEXT, &output.save, "FILE", "write the result, for strobe report"},
        TABLE_FORM_OPTIONS(&output.form),
        {0},
    };
    static const int64_t size_least = 16 << 10, size_most = INT64_C(1) << 34;
    struct arena a = {0};
    const char *command = command_text("lab launch", argc, argv, &a);
    enum status st = opt_parse(options, &argc, argv, NULL);
    if (st == ST_OK && argc)
        st = fail(ST_USAGE, "lab launch takes only options; found %s", argv[0]);
    if (st == ST_OK) st = lab_output_check(&output);
    if (st == ST_OK && (samples < 1 || samples > SAMPLES_MOST || limit < 1 || limit > LIMIT_MOST))
        st = fail(ST_USAGE, "--samples must be 1 to %d, and --limit 1 to %d", SAMPLES_MOST,
                  LIMIT_MOST);
    if (st == ST_OK && (launches < 1 || launches > LAUNCH_MOST))
        st = fail(ST_USAGE, "--launches must be 1 to %d", LAUNCH_MOST);
    if (st == ST_OK && (threads < 0 || threads > THREADS_MOST))
        st = fail(ST_USAGE, "--threads must be 0 to %d", THREADS_MOST);
    if (st == ST_OK && size &&
        (!str_read_bytes(size, &o.bytes) || o.bytes < size_least || o.bytes > size_most))
        st = fail(ST_USAGE, "--size takes a size from 16KiB to 16GiB, as in 64MiB; found %s", size);
    if (st == ST_OK) st = device_of_word(device, &o.device);
    bool gpu = st == ST_OK && o.device.backend->texts;
    if (st == ST_OK && (gpu ? threads != 0 : size != NULL))
        st = fail(ST_USAGE, gpu ? "--threads is of a CPU; leave it out"
                                : "--size is of copies to a GPU; leave it out");
    o.launches = (int)launches;
    o.samples = (int)samples;
    o.limit_ms = 1e3 * (double)limit;
    if (st == ST_OK) {
        threads_set(threads);
        st = run(&o, &output, command, &a);
    }
    arena_release(&a);
    return st;
}
