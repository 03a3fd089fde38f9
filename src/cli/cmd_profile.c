/* strobe profile CONFIG: where the time of a training step goes. */
#include "base/file.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/planned.h"
#include "cli/version.h"
#include "engine/device.h"
#include "measure/random_step.h"
#include "profile/file.h"
#include "profile/trace_file.h"
#include "view/ceilings.h"
#include "view/profile_table.h"

#include <stdio.h>
#include <string.h>

enum { TRACE_MOST_MIB = 4096, TRACE_MIB = 1 << 20 };
enum { STEPS_MOST = 100000, SECONDS_MOST = 1000000, ROWS_MOST = 1000000, STEPS = 20 };
static const int64_t UNSET = INT64_MIN;
/* The least measured time on a CPU, if --steps is not given. */
static const double LEAST_MS = 500;
/* A GPU compiles in its first step and captures a graph, if it replays, in its second. Its clocks
 * need a few more steps to settle. */
enum { WARMUP_HOST = 3, WARMUP_DEVICE = 10 };

struct options {
    struct profile_options run;
    struct profile_table table;
    struct table_form form;
    struct trace_options trace; /* 0 steps: no trace is written */
    int64_t vocab;
    bool steps_given;
    const char *command; /* the command line */
};

static void show(void *user, int done, int total, double left_s, const char *what)
{
    struct progress *p = user;
    p->total = total;
    p->left_s = left_s;
    progress_show(p, done, what);
}

static enum status measure(const struct config *c, int64_t vocab, struct options *o,
                           struct engine *e, struct profile *ret, struct arena *a)
{
    struct progress progress;
    o->run.each = show;
    o->run.user = &progress;
    progress_start(&progress, "profile", 0, o->run.warmup + 2 * o->run.steps);
    progress_show(&progress, 0, "planning");
    interrupt_catch();
    enum status st = random_step_open(e, c, vocab, a);
    bool opened = st == ST_OK;
    if (opened) st = profile_run(e, &o->run, ret, a);
    interrupt_release();
    progress_end(&progress);
    if (st != ST_OK && opened) engine_close(e);
    return st;
}

/* Checks that the profile can be written before minutes are spent on measuring it. */
static enum status check_folder(const char *folder, struct arena *a)
{
    enum status st = file_make_dirs(folder);
    if (st == ST_OK) st = file_check_writable(arena_printf(a, "%s/profile.json", folder));
    if (st == ST_OK) return ST_OK;
    return fail(st,
                "the profile cannot be written to out_dir: %s; choose another --out_dir=FOLDER, or "
                "print to stdout with --json",
                arena_strdup(a, fail_message()));
}

static void print(const struct profile *p, const struct options *o, const char *words,
                  struct arena *a, struct str *s)
{
    if (o->form.json) {
        json_print(profile_json(p, version_number), s);
        return;
    }
    profile_table_print(p, &o->table, &o->form, words, s, a);
}

/* Writes the profile and the trace to the run directory and prints their paths. */
static enum status keep(const struct profile *p, const struct options *o, struct str *s,
                        struct arena *a)
{
    const char *folder = p->engine->program.config->train.out_dir, *words;
    const char *path = arena_printf(a, "%s/profile.json", folder);
    TRY(profile_write(p, version_number, path));
    table_form_note(&o->form, path, s);
    if (!o->trace.steps) return ST_OK;
    TRY(trace_write(p, &o->trace, version_number, folder, &words, a));
    table_form_note(&o->form, words, s);
    return ST_OK;
}

static enum status run(int argc, char **argv, struct options *o, struct arena *a)
{
    struct planned planned = {0};
    struct device device;
    struct machine m;
    struct engine e;
    struct profile p;
    struct str s = {0};
    TRY(planned_read(&planned, argc, argv, o->vocab));
    const struct config *c = &planned.config;
    enum status st = ST_OK;
    TRY_OUT(st, isa_limit(c->plan.isa));
    TRY_OUT(st, device_of(c, &device));
    TRY_OUT(st, random_step_check(c, planned.vocab, EXTENT_STEP));
    if (!o->form.json) TRY_OUT(st, check_folder(c->train.out_dir, a));
    TRY_OUT(st, ceilings_get(&m, &device, a));
    o->run.machine = &m;
    if (!o->steps_given && device.backend->host_memory) o->run.least_ms = LEAST_MS;
    o->run.warmup = device.backend->host_memory ? WARMUP_HOST : WARMUP_DEVICE;
    TRY_OUT(st, measure(c, planned.vocab, o, &e, &p, a));
    p.command = o->command;
    print(&p, o, planned_words(&planned), a, &s);
    if (!o->form.json) st = keep(&p, o, &s, a);
    fputs(str_text(&s), stdout);
    if (st == ST_OK && p.interrupted)
        st = fail(ST_INTERRUPTED, "stopped: the profile covers %d measured step%s of %d", p.steps,
                  p.steps == 1 ? "" : "s", p.wanted);
    engine_close(&e);
out:
    str_release(&s);
    planned_release(&planned);
    return st;
}

static enum status find_by(const char *word, enum profile_by *ret)
{
    for (int by = 0; by < PROFILE_BYS; by++) {
        *ret = (enum profile_by)by;
        if (!strcmp(word, profile_by_name(*ret))) return ST_OK;
    }
    return fail(ST_USAGE, "--by must be kernel, op, family, layer, phase or range; found %s", word);
}

static enum status find_phase(const char *word, unsigned *ret)
{
    *ret = PHASES_ALL;
    if (!strcmp(word, "step")) return ST_OK;
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        *ret = 1u << phase;
        if (!strcmp(word, phase_name((enum phase)phase))) return ST_OK;
    }
    return fail(ST_USAGE, "--phase must be forward, backward, update or step; found %s", word);
}

static enum status within(const char *option, int64_t given, int64_t least, int64_t most)
{
    if (given >= least && given <= most) return ST_OK;
    return fail(ST_USAGE, "--%s must be %lld to %lld; found %lld", option, (long long)least,
                (long long)most, (long long)given);
}

static enum status profile(int argc, char **argv, struct arena *a)
{
    struct options o = {.command = command_text("profile", argc, argv, a)};
    const char *phase = "step", *by = "kernel";
    int64_t steps = UNSET, limit = 60, rows = 20, traced = 3, trace_limit = 64;
    const struct opt options[] = {
        {"phase", OPT_TEXT, &phase, "NAME",
         "one phase only: forward, backward, update (default step: all)"},
        {"by", OPT_TEXT, &by, "NAME",
         "one line for each kernel, op, family, layer, phase or range (kernel)"},
        {"steps", OPT_INT, &steps, "N", "measured steps (20; on a CPU enough for half a second)"},
        {"limit", OPT_INT, &limit, "SECONDS",
         "time for all steps: slow ones are measured less often, at least 3 times (60)"},
        {"rows", OPT_INT, &rows, "N", "print the N longest lines; 0: all (20)"},
        {"trace-steps", OPT_INT, &traced, "N", "steps in the trace; 0: no trace is written (3)"},
        {"trace-limit", OPT_INT, &trace_limit, "MIB",
         "size of the trace before compression; events beyond it are dropped (64)"},
        {"vocab", OPT_INT, &o.vocab, "N", "size of the vocabulary (default: of the data set)"},
        TABLE_FORM_OPTIONS(&o.form),
        {0},
    };
    TRY(opt_parse(options, &argc, argv, config_is_key));
    TRY(table_form_check(&o.form));
    TRY(find_by(by, &o.table.by));
    TRY(find_phase(phase, &o.table.phases));
    o.steps_given = steps != UNSET;
    if (!o.steps_given) steps = STEPS;
    TRY(within("steps", steps, 1, STEPS_MOST));
    TRY(within("limit", limit, 0, SECONDS_MOST));
    TRY(within("rows", rows, 0, ROWS_MOST));
    TRY(within("trace-steps", traced, 0, STEPS_MOST));
    TRY(within("trace-limit", trace_limit, 1, TRACE_MOST_MIB));
    o.trace = (struct trace_options){(int)traced, trace_limit * TRACE_MIB};
    o.run.steps = (int)steps;
    o.run.limit_ms = 1e3 * (double)limit;
    o.table.rows = (int)rows;
    return run(argc, argv, &o, a);
}

enum status cmd_profile(int argc, char **argv)
{
    struct arena a = {0};
    enum status st = profile(argc, argv, &a);
    arena_release(&a);
    return st;
}
