/* strobe lab memory: the memory hierarchy of a CPU or a GPU, measured and drawn. */
#include "cli/command.h"
#include "cli/device.h"
#include "cli/output.h"
#include "view/lab_memory_view.h"

enum { SAMPLES = 9, LIMIT = 20 };
static const int64_t LARGEST_LEAST = 64 << 10, LARGEST_MOST = INT64_C(1) << 34;

struct arguments {
    const char *largest;
    struct place place;
    struct effort effort;
    struct output output;
};

static enum status prepare(const struct arguments *args, struct memory_options *o)
{
    TRY(table_form_check(&args->output.form));
    TRY(effort_read(&args->effort, &o->samples, &o->limit_ms, NULL));
    if (args->largest && (!str_read_bytes(args->largest, &o->largest) ||
                          o->largest < LARGEST_LEAST || o->largest > LARGEST_MOST))
        return fail(ST_USAGE, "--largest takes a size from 64KiB to 16GiB, as in 256MiB; found %s",
                    args->largest);
    TRY(output_check(&args->output));
    return place_open(&args->place, &o->device);
}

/* Why the run tells less than one with the defaults on an idle machine. */
static enum memory_doubt doubt_of(const struct memory_run *r, const struct arguments *args,
                                  double others)
{
    char words[LOAD_WORDS];
    if (r->stopped || args->largest || args->effort.limit < LIMIT || args->effort.samples < SAMPLES)
        return MEMORY_RESTRICTED;
    return !r->gpu && load_words(others, words) ? MEMORY_BUSY : MEMORY_WHOLE;
}

static void keep(const struct machine *m, const struct memory_run *r, const struct arguments *args,
                 double others, struct arena *a)
{
    enum memory_doubt doubt = doubt_of(r, args, others);
    const char *better;
    if (memory_keep(m, r, doubt, &better, a) != ST_OK)
        log_warning("strobe machine and strobe info will not show this: %s", fail_message());
    else if (better)
        log_info("strobe machine and strobe info still show the run of %.10s, because %s", better,
                 doubt == MEMORY_BUSY ? "other programs were busy in this one"
                                      : "this one was shorter, or had fewer sizes or samples");
}

static enum status run(const struct arguments *args, struct arena *a)
{
    struct memory_options o = {0};
    struct memory_run *r = ARENA_NEW(a, struct memory_run, 1);
    struct machine m;
    struct outcome x;
    TRY(prepare(args, &o));
    o.each = outcome_share;
    o.user = &x;
    outcome_begin(&x, "lab memory", 1, &o.device);
    outcome_add(&x, memory_measure(&o, r, a));
    if (outcome_end(&x)) {
        TRY(machine_identify(&m, &o.device, a));
        lab_memory_sheet(r, &x.sheet, a);
        lab_memory_svg(r, &x.picture, a);
        lab_memory_text(r, &x.text, a);
        keep(&m, r, args, x.others, a);
    }
    return outcome_finish(&x, &args->output, a);
}

enum status cmd_lab_memory(int argc, char **argv, struct arena *a)
{
    struct arguments args = {.effort = {"samples", SAMPLES, 1000, LIMIT, 1, 100000}};
    const struct opt options[] = {
        DEVICE_OPTION(&args.place.device),
        {"largest", OPT_TEXT, &args.largest, "SIZE",
         "the largest working set, as in 256MiB (4 times the last cache of a CPU, 8 times that of "
         "a GPU, at most 1 GiB)"},
        {"threads", OPT_INT, &args.place.threads, "N",
         "threads of a CPU (default: all that this process may use)"},
        {"isa", OPT_TEXT, &args.place.isa, "SET",
         "widest instruction set of a CPU: avx512, avx2, sse2, neon or plain"},
        {"samples", OPT_INT, &args.effort.samples, "N",
         "at most this many timings of each point (default: 9)"},
        {"limit", OPT_INT, &args.effort.limit, "SECONDS",
         "about this much time for all measurements (default: 20)"},
        OUTPUT_OPTIONS(&args.output, "also write the curves as a picture"),
        {0},
    };
    args.output.command = command_text("lab memory", argc, argv, a);
    TRY(command_options("lab memory", options, argc, argv));
    return run(&args, a);
}
