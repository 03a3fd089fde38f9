/* strobe profile CONFIG: where the time of a training step goes. */
#include "backend/communicator.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/isa.h"
#include "base/own.h"
#include "cli/child.h"
#include "cli/command.h"
#include "cli/mpirun.h"
#include "cli/planned.h"
#include "cli/variants.h"
#include "cli/version.h"
#include "engine/device.h"
#include "engine/memory.h"
#include "measure/random_step.h"
#include "profile/file.h"
#include "profile/trace_file.h"
#include "view/ceilings.h"
#include "view/profile_table.h"

#include <stdlib.h>
#include <string.h>

enum { TRACE_MOST_MIB = 4096, TRACE_MIB = 1 << 20 };
enum { STEPS_MOST = 100000, SECONDS_MOST = 1000000, ROWS_MOST = 1000000, STEPS = 20 };
enum { STEPS_IN_TURNS = 48 }; /* a pair of steps in each turn */
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
    struct crew crew;    /* by MPI, else empty until the ranks are opened */
    const char *command; /* the command line */
};

static void show(void *user, int done, int total, double left_s, const char *what)
{
    struct progress *p = user;
    p->total = total;
    p->left_s = left_s;
    progress_show(p, done, what);
}

/* The other ranks close their engines at the same time, as NCCL waits for all ranks to leave; those
 * that are threads before rank 0, whose GPU they share. */
static void close_all(struct options *o, struct engine *e)
{
    crew_end(&o->crew);
    engine_close(e);
    crew_close(&o->crew);
}

/* Opens the ranks and runs the steps. If it fails, the engine is closed. */
static enum status open_and_run(const struct config *c, int64_t vocab, struct options *o,
                                struct engine *e, struct profile *ret, struct arena *a)
{
    struct random_crew_job job = {.config = c, .vocab = vocab};
    struct crew *crew = &o->crew;
    bool opened = false;
    if (c->ranks.count > 1) o->run.ranks = profile_ranks_new(a);
    if (o->run.ranks) job.watch = profile_ranks_watch(o->run.ranks);
    enum status st = crew->communicator ? ST_OK : random_crew_open(crew, &job);
    if (st == ST_OK) st = random_step_open(e, c, vocab, crew->communicator, a);
    opened = st == ST_OK;
    if (crew->communicator) crew->listening = opened;
    if (opened)
        st = profile_run(e, &o->run, ret, a);
    else
        crew_end(crew); /* its threads read `job` */
    if (st != ST_OK && opened) close_all(o, e);
    return st;
}

static enum status measure(const struct config *c, int64_t vocab, struct options *o,
                           struct engine *e, struct profile *ret, struct arena *a)
{
    struct progress progress;
    o->run.each = show;
    o->run.user = &progress;
    progress_start(&progress, "profile", 0, o->run.warmup + 2 * o->run.steps);
    progress_show(&progress, 0, "planning");
    enum status st = open_and_run(c, vocab, o, e, ret, a);
    progress_end(&progress);
    return st;
}

/* Checks that the profile can be written before minutes are spent on measuring it. */
static enum status check_folder(const char *folder, struct arena *a)
{
    enum status st = file_make_dirs(folder);
    if (st == ST_OK)
        st = own_check_writable(arena_printf(a, "%s/profile.json", folder), OWN_PROFILE);
    if (st == ST_OK) st = own_check_file(arena_printf(a, "%s/trace.json.gz", folder), OWN_TRACE);
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

/* --- ranks that are processes ----------------------------------------------------------------- */

/* Whether ranks are to be processes: with a GPU each, or because the user wants it. On a CPU
 * threads show the kernels of all ranks. */
static enum status wants_processes(const struct config *c, bool *ret)
{
    struct device device;
    *ret = false;
    if (c->ranks.count == 1) return ST_OK;
    TRY(device_of(c, &device));
    if (device.backend->host_memory && c->ranks.by != RANKS_MPI) return ST_OK;
    return mpirun_is_needed(c, ret);
}

/* Starts this command again as one process for each rank, if ranks are to be processes. */
static enum status start_processes(int argc, char **argv, const struct options *o, struct arena *a)
{
    struct config c;
    bool wanted;
    TRY(command_read_config(&c, argc, argv, true, a));
    if (o->run.turns) return ST_OK; /* mpirun passes on no socket */
    TRY(wants_processes(&c, &wanted));
    return wanted ? mpirun_run(c.ranks.count, a) : ST_OK;
}

/* What all processes must have resolved alike. */
struct beginning {
    char config[HASH_HEX];
    int64_t vocab;
};

static struct beginning beginning_of(const struct planned *p)
{
    struct beginning b = {.vocab = p->vocab};
    struct str s = {0};
    config_print(&p->config, &s);
    hash_bytes(str_text(&s), s.len, b.config);
    str_release(&s);
    return b;
}

/* On rank 0, before it opens its engine: the others open theirs. */
static enum status begin_processes(const struct options *o, const struct planned *p)
{
    struct beginning b = beginning_of(p);
    return communicator_tell(o->crew.communicator, &b, sizeof b);
}

/* On the other ranks: waits until rank 0 begins. */
static enum status wait_for_beginning(const struct options *o, const struct planned *p)
{
    struct beginning own = beginning_of(p), b = {.vocab = 0};
    TRY(communicator_tell(o->crew.communicator, &b, sizeof b));
    if (own.vocab == b.vocab && !strcmp(own.config, b.config)) return ST_OK;
    return fail(ST_USAGE,
                "it has another configuration than rank 0; use the same files on all machines, and "
                "set dtype, replay and pad_vocab");
}

/* Of a process of MPI: joins it to the others. Those other than rank 0 run its steps and do not
 * return. */
static enum status join_processes(int argc, char **argv, struct options *o, struct arena *a)
{
    struct crew_program program = mpirun_program(a);
    struct planned planned = {0};
    TRY(crew_join(&o->crew, &program));
    if (!o->crew.communicator) return ST_OK;
    if (communicator_rank(o->crew.communicator) == 0) {
        o->crew.listening = false; /* until the engine is open */
        mpirun_greet();
        return ST_OK;
    }
    log_set_level(LOG_ERROR); /* rank 0 says it, too */
    enum status st = planned_read(&planned, argc, argv, o->vocab, NULL, a);
    if (st == ST_OK) st = crew_count(&o->crew, &planned.config, planned.config.ranks.count > 1);
    if (st == ST_OK) st = isa_limit(planned.config.plan.isa);
    if (st == ST_OK) st = wait_for_beginning(o, &planned);
    if (st != ST_OK) return crew_fail_process(&o->crew, st);
    struct random_crew_job job = {.config = &planned.config, .vocab = planned.vocab};
    return random_crew_follow(&o->crew, &job);
}

/* --- one profile ------------------------------------------------------------------------------ */

static enum status run(int argc, char **argv, struct options *o, struct arena *a)
{
    struct planned planned = {0};
    struct device device;
    struct machine m;
    struct engine e;
    struct profile p;
    struct str s = {0};
    TRY(start_processes(argc, argv, o, a));
    TRY(join_processes(argc, argv, o, a));
    TRY(planned_read(&planned, argc, argv, o->vocab, NULL, a));
    TRY(crew_count(&o->crew, &planned.config, planned.config.ranks.count > 1));
    const struct config *c = &planned.config;
    if (o->crew.communicator) communicator_set_timeout(o->crew.communicator, c->ranks.timeout);
    if (o->run.turns) log_set_prefix(arena_printf(a, "%s: ", command_last_part(c->train.out_dir)));
    TRY(isa_limit(c->plan.isa));
    TRY(device_of(c, &device));
    if (o->table.occupancy && !device.backend->launches)
        return fail(ST_USAGE, "--occupancy is of the multiprocessors of a GPU: leave it out, or "
                              "add --device=cuda");
    TRY(random_step_check(c, planned.vocab, EXTENT_STEP));
    if (!o->form.json) TRY(check_folder(c->train.out_dir, a));
    crew_set_threads(c); /* the peaks are those of one rank */
    TRY(ceilings_get(&m, &device, a));
    o->run.machine = &m;
    if (!o->steps_given && device.backend->host_memory) o->run.least_ms = LEAST_MS;
    o->run.warmup = device.backend->host_memory ? WARMUP_HOST : WARMUP_DEVICE;
    TRY(begin_processes(o, &planned));
    TRY(measure(c, planned.vocab, o, &e, &p, a));
    p.command = o->command;
    p.commit = version_commit;
    print(&p, o, planned_words(&planned), a, &s);
    enum status st = o->form.json ? ST_OK : keep(&p, o, &s, a);
    command_print(&s);
    if (st == ST_OK && p.interrupted)
        st = fail(ST_INTERRUPTED, "stopped: the profile covers %d measured step%s of %d", p.steps,
                  p.steps == 1 ? "" : "s", p.wanted);
    close_all(o, &e);
    return st;
}

/* --- several values of a key ------------------------------------------------------------------ */

/* The command line of one profile: the words of the user, but lists and the form of the output. */
static char **words_of(const struct variants *v, int i, int argc, char *const *argv,
                       struct arena *a)
{
    char **word = ARENA_NEW(a, char *, argc);
    int words = 0;
    for (int k = 0; k < argc; k++)
        if (!bench_is_list(argv[k]) && strcmp(argv[k], "--json") != 0) word[words++] = argv[k];
    return variants_words(v, i, "profile", word, words, a);
}

/* Plans all variants, and has the ceilings of their devices measured, which all of them use. */
static enum status plan_variants(struct variants *v, struct arena *a)
{
    for (int i = 0; i < v->n; i++) {
        struct config c;
        struct machine m;
        TRY(variants_config(v, i, &c, a));
        TRY(variants_plan(v, i, &c, memory_kinds(&c, EXTENT_STEP), a));
        TRY(isa_limit(c.plan.isa));
        crew_set_threads(&c);
        TRY(check_folder(v->variant[i].dir, a));
        const struct device *d = &v->variant[i].device, *before = &v->variant[i ? i - 1 : 0].device;
        bool known = i && d->backend == before->backend && d->number == before->number;
        if (!known) TRY(ceilings_get(&m, d, a));
    }
    return ST_OK;
}

/* Each variant in a process of its own. */
static enum status profile_variants(const struct variants *v, int argc, char *const *argv,
                                    struct arena *a)
{
    struct job job[VARIANTS_MOST];
    bool processes = false;
    for (int i = 0; i < v->n && !processes; i++) {
        struct config c;
        TRY(variants_config(v, i, &c, a));
        TRY(wants_processes(&c, &processes));
    }
    for (int i = 0; i < v->n; i++)
        job[i] = (struct job){words_of(v, i, argc, argv, a), v->variant[i].name};
    struct jobs_options o = {.in_turns = !processes && variants_fit(v), .warm = 1, .quiet = true};
    if (!o.in_turns)
        log_info("%s: the variants are profiled one after another, so a drift of the machine "
                 "between them does not cancel",
                 processes ? "ranks that are processes cannot take turns"
                           : "the variants do not fit in memory together");
    enum status st = jobs_run(job, v->n, &o, a);
    if (st == ST_OK && interrupt_noted())
        st = fail(ST_INTERRUPTED, "stopped before all variants were profiled; repeat the command");
    return st;
}

/* Profiles all variants and reports what changed from the first. */
static enum status run_variants(int argc, char **argv, int all, char *const *given,
                                const struct table_form *form, struct arena *a)
{
    struct variants v;
    if (form->csv)
        return fail(ST_USAGE, "--csv is for one profile; for lists of values use --json or "
                              "--markdown");
    if (communicator_is_mpi())
        return fail(ST_USAGE, "a list of values starts a profile for each: start the command "
                              "without mpirun, and set --ranks=N");
    TRY(variants_read(&v, argc, argv, a));
    TRY(plan_variants(&v, a));
    TRY(profile_variants(&v, all, given, a));
    char **word = ARENA_NEW(a, char *, v.n + 3);
    int words = 0;
    for (int i = 0; i < v.n; i++) word[words++] = arena_strdup(a, v.variant[i].dir);
    if (form->json) word[words++] = "--json";
    if (form->markdown) word[words++] = "--markdown";
    return cmd_report(words, word, a);
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

enum status cmd_profile(int argc, char **argv, struct arena *a)
{
    struct options o = {.command = command_text("profile", argc, argv, a)};
    const char *phase = "step", *by = "kernel";
    int64_t steps = UNSET, turns = TURN_NONE, limit = 60, rows = 20, traced = 3, trace_limit = 64;
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
        {"counters", OPT_FLAG, &o.run.counters, NULL,
         "also each kernel's DRAM bytes and busy tensor cores, by a GPU's hardware counters"},
        {"occupancy", OPT_FLAG, &o.table.occupancy, NULL,
         "also how a GPU's kernels are launched, and the warps that a multiprocessor holds"},
        /* run only in the turns that `strobe profile` with lists gives over this socket */
        {"turns", OPT_INT, &turns, "FD", NULL},
        {"vocab", OPT_INT, &o.vocab, "N", "size of the vocabulary (default: of the data set)"},
        TABLE_FORM_OPTIONS(&o.form),
        {0},
    };
    int all = argc;
    char **given = ARENA_NEW(a, char *, argc + 1);
    for (int i = 0; i < argc; i++) given[i] = argv[i];
    TRY(opt_parse(options, &argc, argv, config_is_key));
    TRY(table_form_check(&o.form));
    TRY(find_by(by, &o.table.by));
    TRY(find_phase(phase, &o.table.phases));
    if (o.table.occupancy && o.table.by != BY_KERNEL)
        return fail(ST_USAGE, "--occupancy is of single kernels: leave out --by=%s", by);
    o.steps_given = steps != UNSET;
    o.run.turns = turns == TURN_NONE ? 0 : (int)turns;
    if (!o.steps_given) steps = o.run.turns ? STEPS_IN_TURNS : STEPS;
    TRY(command_within("steps", steps, 1, STEPS_MOST));
    TRY(command_within("limit", limit, 0, SECONDS_MOST));
    TRY(command_within("rows", rows, 0, ROWS_MOST));
    TRY(command_within("trace-steps", traced, 0, STEPS_MOST));
    TRY(command_within("trace-limit", trace_limit, 1, TRACE_MOST_MIB));
    o.trace = (struct trace_options){(int)traced, trace_limit * TRACE_MIB};
    o.run.steps = (int)steps;
    o.run.limit_ms = 1e3 * (double)limit;
    o.table.rows = (int)rows;
    if (variants_wanted(argc, argv)) return run_variants(argc, argv, all, given, &o.form, a);
    enum status st = run(argc, argv, &o, a);
    crew_close(&o.crew);
    return st;
}
