/* strobe profile CONFIG: where the time of a training step goes. */
#include "base/log.h"
#include "base/str.h"
#include "base/threads.h"
#include "cli/ceilings.h"
#include "cli/command.h"
#include "cli/planned.h"
#include "cli/profile_table.h"
#include "cli/table_form.h"
#include "cli/version.h"
#include "measure/noise.h"
#include "profile/file.h"
#include "profile/trace_file.h"
#include "train/device.h"

#include <stdio.h>
#include <string.h>

enum { TRACE_MOST_MIB = 4096, TRACE_MIB = 1 << 20 };
enum { STEPS_MOST = 100000, SECONDS_MOST = 1000000, ROWS_MOST = 1000000, PERMILLE = 1000 };
/* A GPU compiles in its first step, records, where it replays, in its second, and then takes a while to its clocks. */
enum { WARMUP_HOST = 3, WARMUP_DEVICE = 10 };

struct options {
    struct profile_options run;
    struct profile_table table;
    struct table_form form;
    struct trace_options trace; /* 0 steps: none is written */
    int64_t vocab;
};

static void show(void *user, double share, const char *what)
{
    progress_show(user, (int64_t)(share * PERMILLE), what);
}

static enum status measure(const struct config *c, int64_t vocab, struct options *o,
                           struct engine *e, struct profile *ret, struct arena *a)
{
    struct progress progress;
    TRY(noise_open(e, c, vocab, a));
    o->run.each = show;
    o->run.user = &progress;
    progress_start(&progress, "profile", 0, PERMILLE);
    enum status st = profile_run(e, &o->run, ret, a);
    progress_end(&progress);
    if (st != ST_OK) engine_close(e);
    return st;
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

/* Into the run directory, and says so. */
static enum status keep(const struct profile *p, const struct options *o, struct str *s,
                        struct arena *a)
{
    const char *folder = p->engine->config->train.out_dir, *words;
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
    TRY_OUT(st, noise_check(c, planned.vocab));
    TRY_OUT(st, ceilings_get(&m, &device, a));
    o->run.machine = &m;
    o->run.warmup = device.backend->host_memory ? WARMUP_HOST : WARMUP_DEVICE;
    TRY_OUT(st, measure(c, planned.vocab, o, &e, &p, a));
    print(&p, o, planned_words(&planned), a, &s);
    if (!o->form.json) st = keep(&p, o, &s, a);
    fputs(str_text(&s), stdout);
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
    return fail(ST_USAGE, "--by=%s: kernel, op, family, layer, phase or range", word);
}

static enum status find_phase(const char *word, unsigned *ret)
{
    *ret = PHASES_ALL;
    if (!strcmp(word, "step")) return ST_OK;
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        *ret = 1u << phase;
        if (!strcmp(word, phase_name((enum phase)phase))) return ST_OK;
    }
    return fail(ST_USAGE, "--phase=%s: forward, backward, update or step", word);
}

enum status cmd_profile(int argc, char **argv)
{
    struct options o = {0};
    const char *phase = "step", *by = "kernel";
    int64_t steps = 20, limit = 60, rows = 20, traced = 3, trace_limit = 64;
    const struct opt options[] = {
        {"phase", OPT_TEXT, &phase, "NAME",
         "only this part of a step: forward, backward, update (step)"},
        {"by", OPT_TEXT, &by, "NAME",
         "a line for each kernel, op, family, layer, phase or range (kernel)"},
        {"steps", OPT_INT, &steps, "N", "that are watched (20)"},
        {"limit", OPT_INT, &limit, "SECONDS", "for all: slow steps are fewer, three at least (60)"},
        {"rows", OPT_INT, &rows, "N", "the N longest lines; 0: all (20)"},
        {"trace-steps", OPT_INT, &traced, "N", "that the trace shows; 0: no trace is written (3)"},
        {"trace-limit", OPT_INT, &trace_limit, "MIB",
         "of the trace before it is compressed: what goes beyond is left out (64)"},
        {"vocab", OPT_INT, &o.vocab, "N", "size of the vocabulary (that of the data set)"},
        TABLE_FORM_OPTIONS(&o.form),
        {0},
    };
    TRY(opt_parse(options, &argc, argv, config_is_key));
    TRY(table_form_check(&o.form));
    TRY(find_by(by, &o.table.by));
    TRY(find_phase(phase, &o.table.phases));
    if (steps < 1 || steps > STEPS_MOST || limit < 0 || limit > SECONDS_MOST)
        return fail(ST_USAGE, "--steps is 1 to %d, --limit 0 to %d", STEPS_MOST, SECONDS_MOST);
    if (rows < 0 || rows > ROWS_MOST) return fail(ST_USAGE, "--rows is 0 to %d", ROWS_MOST);
    if (traced < 0 || traced > STEPS_MOST || trace_limit < 1 || trace_limit > TRACE_MOST_MIB)
        return fail(ST_USAGE, "--trace-steps is 0 to %d, --trace-limit 1 to %d", STEPS_MOST,
                    TRACE_MOST_MIB);
    o.trace = (struct trace_options){(int)traced, trace_limit * TRACE_MIB};
    o.run.steps = (int)steps;
    o.run.limit_ms = 1e3 * (double)limit;
    o.table.rows = (int)rows;
    struct arena a = {0};
    enum status st = run(argc, argv, &o, &a);
    arena_release(&a);
    return st;
}
