/* strobe train: starts a run, or continues one. */
#include "backend/backend.h"
#include "base/file.h"
#include "base/isa.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/str.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/version.h"
#include "config/config.h"
#include "engine/device.h"
#include "engine/environment.h"
#include "report/html.h"
#include "report/subjects.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A run directory in place of CONFIG stands for its config.conf, with out_dir set to it. */
static enum status read_config(struct config *c, int argc, char **argv, struct arena *a)
{
    char **word = ARENA_NEW(a, char *, 2 * argc);
    int words = 0;
    for (int i = 0; i < argc; i++) {
        bool is_dir = argv[i][0] != '-' && file_is_dir(argv[i]);
        if (is_dir) word[words++] = arena_printf(a, "--out_dir=%s", argv[i]);
    }
    for (int i = 0; i < argc; i++) {
        bool is_dir = argv[i][0] != '-' && file_is_dir(argv[i]);
        word[words++] = is_dir ? arena_printf(a, "%s/config.conf", argv[i]) : argv[i];
    }
    TRY(command_read_config(c, words, word, true, a));
    return model_check(c);
}

static void print_before(const struct trainer *t)
{
    const struct config *c = t->config;
    const struct dataset *d = &t->learner.dataset;
    char train[32], val[32];
    struct str s = {0};
    str_printf(&s, "run          %s\n", c->train.out_dir);
    str_printf(&s, "data         %s, %s training tokens, %s validation tokens, vocabulary of %d\n",
               d->name, str_thousands(train, d->count[SPLIT_TRAIN]),
               str_thousands(val, d->count[SPLIT_VAL]), d->vocabulary.size);
    facts_print(&t->facts, &s);
    str_printf(&s, "threads      %lld, isa %s", (long long)threads_count(), isa_words[isa_used()]);
    log_info("%s\n", str_text(&s));
    str_release(&s);
}

/* Prints clock, power and utilisation of the device, if it has sensors for them. */
static void print_gauges(const struct run_summary *r)
{
    struct str s = {0};
    gauge_print(&r->gauges, &s);
    if (s.len) printf("\ndevice %s", str_text(&s));
    if (s.len && isfinite(r->joules_per_token)) printf("; %.3g J a token", r->joules_per_token);
    str_release(&s);
}

static void print_after(const struct trainer *t)
{
    const struct run_summary *r = &t->summary;
    char speed[32];
    printf("%lld iterations", (long long)(t->iter - t->begun));
    if (isfinite(r->ms_median))
        printf(", %.2f ms each (median), %s tokens/s", r->ms_median,
               str_thousands(speed, (int64_t)r->tokens_per_s));
    print_gauges(r);
    printf("\ntrain loss %.4f, val loss %.4f", r->final_train_loss, r->final_val_loss);
    if (r->best_iter > 0)
        printf("; the best val loss was %.4f after %lld iterations", r->best_val_loss,
               (long long)r->best_iter);
    printf("\n");
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
        if (!l.why && strcmp(l.name, "driver") != 0)
            environment_add_library(e, l.name, arena_strdup(a, l.version));
}

static void gather(struct environment *e, const struct config *c, struct arena *a)
{
    environment_gather(e, a);
    e->version = version_number;
    e->commit = version_commit;
    e->mode = version_mode;
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
             dir, (long long)c->train.max_iters, dir);
    if (!json) return ST_OK;
    TRY(file_read(arena_printf(a, "%s/summary.json", dir), a, &summary, &bytes));
    fputs(summary, stdout);
    return ST_OK;
}

static enum status train(const struct config *c, bool overwrite, bool json, struct arena *a)
{
    struct environment environment;
    struct trainer t;
    threads_set(c->plan.threads);
    TRY(isa_limit(c->plan.isa));
    gather(&environment, c, a);
    struct trainer_options o = {overwrite, &environment};
    TRY(trainer_open(&t, c, &o, a));
    if (t.finished) {
        trainer_close(&t);
        return report_finished(c, json, a);
    }
    print_before(&t);
    enum status st = trainer_run(&t);
    if (st == ST_OK) {
        struct str s = {0};
        if (json)
            run_summary_print_json(&t.summary, &s);
        else
            print_after(&t);
        command_print(&s);
        write_page(c->train.out_dir, a);
        log_info("next: strobe sample %s", c->train.out_dir);
    }
    trainer_close(&t);
    return st;
}

enum status cmd_train(int argc, char **argv)
{
    bool overwrite = false, json = false;
    const struct opt options[] = {
        {"overwrite", OPT_FLAG, &overwrite, NULL, "replace the run in out_dir"},
        {"json", OPT_FLAG, &json, NULL, "print the result as JSON"},
        {0},
    };
    TRY(opt_parse(options, &argc, argv, config_is_key));
    struct arena a = {0};
    struct config c;
    enum status st = read_config(&c, argc, argv, &a);
    if (st == ST_OK && overwrite && c.train.init_from == INIT_RESUME)
        st = fail(ST_USAGE,
                  "--overwrite and --init_from=resume contradict each other; leave one out");
    if (st == ST_OK) st = train(&c, overwrite, json, &a);
    arena_release(&a);
    return st;
}
