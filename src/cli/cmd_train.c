/* strobe train: starts a run, or continues one. */
#include "backend/backend.h"
#include "backend/communicator.h"
#include "base/file.h"
#include "base/isa.h"
#include "base/load.h"
#include "base/shell.h"
#include "base/threads.h"
#include "base/visible.h"
#include "cli/command.h"
#include "cli/device.h"
#include "cli/mpirun.h"
#include "config/config.h"
#include "engine/device.h"
#include "engine/environment.h"
#include "engine/optimizer.h"
#include "engine/shards.h"
#include "report/html.h"
#include "report/subjects.h"
#include "train/trainer.h"
#include "view/ceilings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What the command line asks for. */
struct request {
    bool overwrite, json;
    int64_t turns; /* TURN_NONE: none */
    int words;     /* CONFIG and overrides */
    char **word;
    int run;           /* the word that is a run directory in place of CONFIG; -1: none */
    struct crew ranks; /* by MPI, until a trainer has them */
    bool defaults;     /* there is no CONFIG: the defaults of all keys, with a data set */
};

/* The last value of a key on the command line; NULL: it is not set. */
static const char *value_of(const struct request *r, const char *key)
{
    const char *found = NULL;
    size_t n = strlen(key);
    for (int i = 0; i < r->words; i++) {
        const char *word = r->word[i] + (strncmp(r->word[i], "--", 2) ? 0 : 2);
        if (!strncmp(word, key, n) && word[n] == '=') found = word + n + 1;
    }
    return found;
}

/* Puts a run in front of the words. */
static void name_run(struct request *r, const char *run, struct arena *a)
{
    char **word = ARENA_NEW(a, char *, r->words + 2);
    memcpy(word + 1, r->word, (size_t)r->words++ * sizeof *word);
    *word = arena_strdup(a, run);
    r->word = word;
    r->run = 0;
}

/* What nanoGPT's users type without CONFIG: --init_from=resume with --out_dir=RUN, which continues
 * the run; --init_from=RUN with --out_dir=NEW, a fork with the configuration of the run; and
 * --dataset=NAME, which trains the model that the defaults describe. */
static enum status go_without_config(struct request *r, struct arena *a)
{
    struct config c;
    const char *origin = value_of(r, "init_from"), *out_dir = value_of(r, "out_dir");
    r->defaults = value_of(r, "dataset") != NULL;
    if (!origin || !strcmp(origin, INIT_SCRATCH)) return ST_OK;
    config_init(&c);
    bool resumes = !strcmp(origin, INIT_RESUME);
    bool is_run = file_exists(arena_printf(a, "%s/config.conf", origin));
    if (!resumes && !is_run && r->defaults) return ST_OK;
    if (!resumes && !is_run)
        return fail(ST_USAGE,
                    "%s is no run, whose configuration a fork would have: name a configuration, as "
                    "in strobe train CONFIG --init_from=%s",
                    origin, shell_word(origin, a));
    if (!resumes && !out_dir)
        return fail(ST_USAGE, "--init_from=%s needs --out_dir=NEW, the folder of the new run",
                    origin);
    if (!out_dir) out_dir = c.train.out_dir;
    name_run(r, resumes ? out_dir : origin, a);
    return ST_OK;
}

/* A run stands for its config.conf, except for replay, which follows the device and the ranks. */
static enum status read_config(struct config *c, const struct request *r, struct arena *a)
{
    if (r->run >= 0 && !file_exists(arena_printf(a, "%s/config.conf", r->word[r->run])))
        return fail(ST_USAGE,
                    "%s is not a run: it has no config.conf; to begin with the weights of a model, "
                    "name it after CONFIG: strobe train CONFIG --init_from=%s",
                    r->word[r->run], shell_word(r->word[r->run], a));
    TRY(command_read_config(c, r->words, r->word, !r->defaults, a));
    if (r->run >= 0 && !value_of(r, "replay")) c->plan.replay = REPLAY_AUTO;
    return model_check(c);
}

/* The overrides alone, with out_dir set to the run directory if there is one. */
static enum status read_overrides(struct config *c, const struct request *r, struct arena *a)
{
    if (r->run >= 0) TRY(config_set(c, arena_printf(a, "--out_dir=%s", r->word[r->run]), a));
    for (int i = 0; i < r->words; i++)
        if (i != r->run && config_is_override(r->word[i])) TRY(config_set(c, r->word[i], a));
    return ST_OK;
}

static void print_ranks(const struct trainer *t, struct str *s)
{
    const struct program *p = &t->learner.engine.program;
    char bytes[32];
    int64_t more = shard_host_bytes(p->config, &p->model, optimizer_of(p->config)->states);
    str_printf(s, "ranks        %lld, joined by %s", (long long)p->config->ranks.count,
               communicator_name(t->ranks.communicator));
    if (more)
        str_printf(s, "; rank 0 gathers checkpoints in %s more of host memory",
                   str_bytes(bytes, (double)more));
    str_append(s, "\n");
}

static void print_before(const struct trainer *t)
{
    const struct config *c = t->config;
    const struct dataset *d = &t->learner.dataset;
    char train[32], val[32];
    struct str s = {0};
    str_append(&s, "run          ");
    visible_append(&s, c->train.out_dir);
    str_append(&s, "\ndata         ");
    visible_append(&s, d->name);
    str_printf(&s, ", %s training tokens, %s validation tokens, vocabulary of %d\n",
               str_thousands(train, d->count[SPLIT_TRAIN]), str_thousands(val, d->count[SPLIT_VAL]),
               d->vocabulary.size);
    facts_print(&t->facts, &s);
    str_append(&s, t->disk_words);
    if (t->ranks.communicator) print_ranks(t, &s);
    str_printf(&s, "threads      %lld, isa %s, dtype %s", (long long)threads_count(),
               isa_words[isa_used()], config_value_text(c, "dtype", t->arena));
    log_info("%s\n", str_text(&s));
    str_release(&s);
}

/* Prints clock, power and utilization of the device, if it has sensors for them. */
static void print_gauges(const struct run_summary *r)
{
    struct str s = {0};
    gauge_print(&r->gauges, &s);
    if (s.len) printf("\ndevice %s", str_text(&s));
    if (s.len && isfinite(r->gauges.joules_per_token))
        printf("; %.3g J a token", r->gauges.joules_per_token);
    str_release(&s);
}

static void print_after(const struct trainer *t)
{
    const struct run_summary *r = &t->summary;
    char speed[32], loss[32], wall[WALL_TEXT];
    if (t->turns != TURN_NONE) printf("%s: ", command_last_part(t->config->train.out_dir));
    int64_t done = t->iter - t->begun;
    printf("%lld iteration%s", (long long)done, done == 1 ? "" : "s");
    if (isfinite(r->ms_median))
        printf(", %.2f ms each (median), %s tokens/s", r->ms_median,
               str_thousands(speed, (int64_t)r->tokens_per_s));
    if (isfinite(r->mfu)) printf(", MFU %s %%", str_number(speed, 100 * r->mfu, 3));
    if (isfinite(r->ms_median))
        printf("; by the mean %s tokens/s", str_thousands(speed, (int64_t)r->run_tokens_per_s));
    if (isfinite(r->run_mfu)) printf(", MFU %s %%", str_number(speed, 100 * r->run_mfu, 3));
    if (r->mfu > 1) printf(" (the peak was measured too low; `strobe machine` measures it again)");
    print_gauges(r);
    printf("\ntrain loss %s", str_loss(loss, r->final_train_loss));
    printf(", val loss %s", str_loss(loss, r->final_val_loss));
    if (r->best_iter >= 0)
        printf("; the best val loss was %s after %lld iteration%s%s",
               str_loss(loss, r->best_val_loss), (long long)r->best_iter,
               r->best_iter == 1 ? "" : "s",
               r->best_iter || !t->iter ? "" : ", of which there is no checkpoint");
    printf("\nwall time %s\n", run_summary_wall(r, wall));
}

/* Writes the page of the run. A failure is only a warning: the training itself succeeded. */
static void write_page(const char *dir, struct arena *a)
{
    struct subjects run;
    struct comparison c;
    char *dirs[] = {arena_strdup(a, dir)};
    const char *path = arena_printf(a, "%s/report.html", dir);
    enum status st = subjects_read(dirs, 1, a, &run);
    if (st == ST_OK) {
        compare_runs(run.run, run.runs, a, &c);
        st = html_write(&(struct html_page){&c, &run.profiles, NULL, 0}, path, a);
    }
    if (st == ST_OK)
        log_info("page: %s", path);
    else
        log_warning("the page could not be written: %s", fail_message());
}

/* The GPU, its driver and its libraries. */
static void gather_device(struct environment *e, const struct device *d, struct arena *a)
{
    struct device_facts f;
    struct device_library l;
    if (d->backend->host_memory || d->backend->devices.describe(d->number, &f) != ST_OK) return;
    e->device = arena_strdup(a, f.name);
    if (backend_library(d->backend, "driver", &l)) e->driver = arena_strdup(a, l.version);
    for (int i = 0; backend_library_at(d->backend, i, &l); i++)
        if (!l.unavailable_because && strcmp(l.name, "driver") != 0)
            environment_add_library(e, l.name, arena_strdup(a, l.version));
}

static void gather(struct environment *e, const struct config *c, struct arena *a)
{
    command_environment(e, a);
    e->threads = (int)threads_count();
    e->isa = isa_words[isa_used()];
    struct device d;
    if (device_of(c, &d) != ST_OK) return; /* the trainer reports this error */
    e->isa_library = d.backend->kernels.library_isa ? d.backend->kernels.library_isa() : NULL;
    gather_device(e, &d, a);
}

static enum status report_finished(const struct config *c, bool json, struct arena *a)
{
    const char *dir = c->train.out_dir;
    char *summary;
    int64_t bytes;
    log_info("%s already has its %lld iterations: see it with `strobe report %s`, or continue with "
             "a larger --max_iters",
             dir, (long long)c->train.max_iters, shell_word(dir, a));
    if (!json) return ST_OK;
    TRY(file_read(arena_printf(a, "%s/summary.json", dir), a, &summary, &bytes));
    fputs(summary, stdout);
    return ST_OK;
}

/* The measured peaks of the device, if there is a record. Training measures nothing. */
static void know_peaks(struct trainer *t, const struct config *c, struct arena *a)
{
    struct device d;
    struct machine m;
    enum dtype dtype = precision_is_mixed(c->plan.dtype) ? DT_BF16 : DT_F32;
    if (device_of(c, &d) != ST_OK) return;
    if (!ceilings_find(&m, &d, a)) {
        log_info("no MFU: the peaks of this machine are not known; `strobe machine` measures them");
        return;
    }
    const struct machine_peak *peak =
        machine_peak(&m, machine_precision(dtype, c->plan.dtype == PRECISION_TFLOAT32));
    if (!peak) return;
    t->peak_flops = peak->flops;
    t->peak_bytes = machine_copy_large(&m)->moved;
}

/* The number of threads is part of the record of a run on a CPU, because it decides the last bits
 * of sums: a run that is continued keeps it. Not so if the number of ranks changes, or with ranks
 * on several machines. Variants in turns would take each other for other programs. */
static void set_threads(const struct request *r, struct config *c, const struct config *before)
{
    struct device d;
    bool alone = c->ranks.count == 1 && r->turns == TURN_NONE;
    bool on_cpu = device_of(c, &d) == ST_OK && d.backend->host_memory;
    bool continues = before && before->ranks.count == c->ranks.count;
    if (on_cpu && !c->plan.threads && continues) c->plan.threads = before->plan.threads;
    if (on_cpu && !c->plan.threads && alone) c->plan.threads = device_free_threads(c);
    crew_set_threads(c);
    if (on_cpu && communicator_local_ranks(c->ranks.count) == c->ranks.count)
        c->plan.threads = threads_count();
}

/* Trains in the directory that `t` has claimed. */
static enum status train(struct trainer *t, struct request *r, struct config *c, struct arena *a)
{
    struct environment environment;
    t->ranks = r->ranks; /* trainer_close ends them */
    r->ranks = (struct crew){0};
    bool by_mpirun = false;
    enum status st;
    TRY_OUT(st, crew_count(&t->ranks, c, value_of(r, "ranks") != NULL));
    /* in turns, ranks are threads, as mpirun passes on no socket */
    if (r->turns == TURN_NONE) TRY_OUT(st, mpirun_is_needed(c, &by_mpirun));
    if (by_mpirun) {
        trainer_close(t);
        return mpirun_run(c->ranks.count, a);
    }
    set_threads(r, c, t->before);
    TRY_OUT(st, isa_limit(c->plan.isa));
    TRY_OUT(st, machine_choose(c, t->before, r->turns == TURN_NONE, a));
    if (r->turns != TURN_NONE)
        log_set_prefix(arena_printf(a, "%s: ", command_last_part(c->train.out_dir)));
    gather(&environment, c, a);
    TRY(trainer_begin(t, c, &environment));
    if (t->finished) {
        trainer_close(t);
        return report_finished(c, r->json, a);
    }
    know_peaks(t, c, a);
    t->turns = (int)r->turns;
    print_before(t);
    st = trainer_run(t);
    char wall[WALL_TEXT];
    if (st == ST_INTERRUPTED && t->turns == TURN_NONE)
        log_info("wall time %s", run_summary_wall(&t->summary, wall));
    load_warn(t->summary.others_busy);
    const struct gauge_summary *g = &t->summary.gauges;
    if (g->samples && g->others > LOAD_BUSY)
        log_warning(
            "another program (process %d) was on the GPU for %.0f %% of the time: times are "
            "longer than on an idle GPU, and vary",
            g->other, 100 * g->others);
    if (st == ST_OK) {
        struct str s = {0};
        if (r->json)
            run_summary_print_json(&t->summary, &s);
        else
            print_after(t);
        command_print(&s);
        if (lock_check(&t->run.lock) == ST_OK)
            write_page(c->train.out_dir, a);
        else
            log_warning("the page is not written: %s", fail_message());
        if (t->saved > 0)
            log_info("next: strobe sample %s", shell_word(c->train.out_dir, a));
        else
            log_info("no iteration was done, so there is no checkpoint; next: strobe train %s "
                     "--init_from=resume --max_iters=N",
                     shell_word(c->train.out_dir, a));
    }
out:
    trainer_close(t);
    return st;
}

/* A run that is continued by its directory has its checkpoint's configuration, not that of its
 * config.conf, which anything may have changed. */
static enum status continue_run(struct trainer *t, struct request *r, struct config *c,
                                struct arena *a)
{
    TRY(trainer_claim(t, c->train.out_dir, true, false, a));
    enum status st = ST_OK;
    if (t->before) {
        *c = *t->before;
        c->train.init_from = INIT_RESUME;
        c->plan.replay = REPLAY_AUTO; /* both depend on the device and the ranks */
        c->plan.threads = 0;
        st = read_overrides(c, r, a);
        if (st == ST_OK) st = model_check(c);
    } else {
        st = read_config(c, r, a);
    }
    if (st == ST_OK) return train(t, r, c, a);
    trainer_close(t);
    return st;
}

static enum status run_request(struct request *r, struct arena *a)
{
    struct config c;
    struct trainer t;
    config_init(&c);
    if (r->run >= 0) TRY(read_overrides(&c, r, a));
    bool continues = r->run >= 0 && config_resumes(&c) && !strcmp(c.train.out_dir, r->word[r->run]);
    if (!continues) TRY(read_config(&c, r, a));
    bool resume = config_resumes(&c);
    if (r->overwrite && resume)
        return fail(ST_USAGE,
                    "--overwrite and --init_from=resume contradict each other; leave one out");
    if (continues) return continue_run(&t, r, &c, a);
    if (r->run >= 0 && !strcmp(c.train.init_from, INIT_SCRATCH) &&
        strcmp(c.train.out_dir, r->word[r->run]) != 0)
        log_info("a new run with the keys of %s and new weights; to begin with its weights, add "
                 "--init_from=%s\n",
                 r->word[r->run], shell_word(r->word[r->run], a));
    TRY(trainer_claim(&t, c.train.out_dir, resume, r->overwrite, a));
    return train(&t, r, &c, a);
}

enum status cmd_train(int argc, char **argv, struct arena *a)
{
    struct request r = {.turns = TURN_NONE};
    const struct opt options[] = {
        {"overwrite", OPT_FLAG, &r.overwrite, NULL, "replace the run in out_dir"},
        {"json", OPT_FLAG, &r.json, NULL, "print the result as JSON"},
        /* train only in the turns that `strobe compare` gives over this socket */
        {"turns", OPT_INT, &r.turns, "FD", NULL},
        {0},
    };
    TRY(opt_parse(options, &argc, argv, config_is_key));
    r.words = argc;
    r.word = argv;
    int config;
    TRY(command_find_config(argc, argv, &config));
    r.run = config >= 0 && file_is_dir(argv[config]) ? config : -1;
    if (config < 0) TRY(go_without_config(&r, a));
    struct crew_program program = mpirun_program(a);
    enum status st = ranks_join(&r.ranks, &program);
    if (st == ST_OK && r.ranks.communicator) mpirun_greet();
    if (st == ST_OK) st = run_request(&r, a);
    crew_close(&r.ranks);
    return st;
}
