#include "train/rundir.h"

#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { MEMORY_ROWS = 20 }; /* rows of the memory map in plan.txt */

static const char *const all_files[] = {"config.conf", "env.json",    "log.jsonl",
                                        "plan.txt",    "plan.json",   "summary.json",
                                        "samples.txt", "report.html", "vocabulary.json"};
static const char *const last_files[] = {"summary.json", "samples.txt", "report.html"};

static enum status path_of(const char *dir, const char *name, char path[1024])
{
    if (snprintf(path, 1024, "%s/%s", dir, name) < 1024) return ST_OK;
    return fail(ST_IO, "%s/%s: the path is too long", dir, name);
}

bool rundir_has_run(const char *dir)
{
    char path[1024];
    if (path_of(dir, "ckpt", path) == ST_OK && file_exists(path)) return true;
    for (int i = 0; i < COUNT_OF(all_files); i++)
        if (path_of(dir, all_files[i], path) == ST_OK && file_exists(path)) return true;
    return false;
}

enum status rundir_lock(const char *dir, int *ret_fd)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail(ST_IO, "%s: %s", dir, strerror(errno));
    /* File systems without locks are accepted. */
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        return fail(
            ST_USAGE,
            "another training run is using %s: wait until it ends, or choose another --out_dir",
            dir);
    }
    *ret_fd = fd;
    return ST_OK;
}

static enum status remove_files(const char *dir, const char *const *names, int n)
{
    for (int i = 0; i < n; i++) {
        char path[1024];
        TRY(path_of(dir, names[i], path));
        if (unlink(path) != 0 && errno != ENOENT && errno != ENOTDIR)
            return fail(ST_IO, "%s: %s", path, strerror(errno));
    }
    return ST_OK;
}

enum status rundir_clear(const char *dir)
{
    char path[1024];
    TRY(path_of(dir, "ckpt", path));
    TRY(file_remove_dir(path));
    return remove_files(dir, all_files, COUNT_OF(all_files));
}

bool rundir_is_complete(const char *dir)
{
    char path[1024];
    if (path_of(dir, "summary.json", path) != ST_OK) return false;
    json_t *summary = json_load_file(path, 0, NULL);
    bool complete = json_is_true(json_object_get(summary, "complete"));
    json_decref(summary);
    return complete;
}

enum status rundir_reopen(const char *dir)
{
    return remove_files(dir, last_files, COUNT_OF(last_files));
}

enum status rundir_write_text(const char *dir, const char *name, const char *text)
{
    char path[1024];
    TRY(path_of(dir, name, path));
    return file_write(path, text, (int64_t)strlen(text));
}

enum status rundir_write_config(const char *dir, const struct config *c)
{
    struct config kept = *c;
    kept.train.init_from = INIT_SCRATCH;
    struct str s = {0};
    config_print(&kept, &s);
    enum status st = rundir_write_text(dir, "config.conf", str_text(&s));
    str_release(&s);
    return st;
}

static void print_plans(const struct program *p, struct str *s)
{
    static const enum graph_kind shown[] = {GRAPH_MICRO, GRAPH_UPDATE};
    for (int i = 0; i < COUNT_OF(shown); i++) {
        if (!p->built[shown[i]]) continue;
        str_printf(s, "# %s\n", graph_kind_name(shown[i]));
        plan_print(&p->plan[shown[i]], s);
        str_append(s, "\n");
    }
    str_append(s, "# memory at its peak\n");
    plan_print_memory(&p->plan[GRAPH_MICRO], MEMORY_ROWS, s);
}

enum status rundir_write_plan(const char *dir, const struct program *p)
{
    struct facts f = facts_of(p);
    struct str text = {0}, json = {0};
    print_plans(p, &text);
    json_print_with(facts_json(&f), JSON_INDENT(2), &json);
    enum status st = rundir_write_text(dir, "plan.txt", str_text(&text));
    if (st == ST_OK) st = rundir_write_text(dir, "plan.json", str_text(&json));
    str_release(&text);
    str_release(&json);
    return st;
}

static json_t *known(double x)
{
    return x >= 0 ? json_real(x) : json_null();
}

static json_t *telemetry_json(const struct run_summary *s)
{
    const struct gauge_summary *g = &s->gauges;
    if (g->samples == 0) return json_null();
    json_t *by = json_object();
    for (int i = 0; i < THROTTLE_COUNT; i++)
        if (g->by[i] > 0) json_object_set_new(by, throttle_name(i), json_real(g->by[i]));
    json_t *o =
        json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "samples", g->samples,
                  "sample_ms", known(g->sample_ms), "seconds", known(g->seconds), "clock_max_mhz",
                  known(g->clock_max_mhz), "power_limit_w", known(g->power_limit_w), "energy_j",
                  known(g->energy_j), "joules_per_token", number_or_null(s->joules_per_token),
                  "throttled", known(g->throttled), "throttled_by", by);
    for (int i = 0; i < GAUGE_VALUES; i++)
        json_object_set_new(o, gauge_name(i),
                            g->value[i].mean < 0
                                ? json_null()
                                : json_pack("{s:f, s:f, s:f}", "mean", g->value[i].mean, "min",
                                            g->value[i].min, "max", g->value[i].max));
    return o;
}

void run_summary_print_json(const struct run_summary *s, struct str *out)
{
    json_t *object = json_pack(
        "{s:i, s:I, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:I, s:o}", "v", 1,
        "iters", (json_int_t)s->iters, "complete", s->complete, "seconds",
        number_or_null(s->seconds), "ms_median", number_or_null(s->ms_median), "ms_std",
        number_or_null(s->ms_std), "tokens_per_s", number_or_null(s->tokens_per_s),
        "final_train_loss", number_or_null(s->final_train_loss), "final_val_loss",
        number_or_null(s->final_val_loss), "best_val_loss", number_or_null(s->best_val_loss),
        "best_iter", (json_int_t)s->best_iter, "others_busy", number_or_null(s->others_busy),
        "peak_measured", s->peak_measured < 0 ? json_null() : json_integer(s->peak_measured),
        "peak_rss", (json_int_t)s->peak_rss, "gauges", telemetry_json(s));
    json_print_with(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9), out);
}

enum status rundir_write_summary(const char *dir, const struct run_summary *s)
{
    struct str text = {0};
    run_summary_print_json(s, &text);
    enum status st = rundir_write_text(dir, "summary.json", str_text(&text));
    str_release(&text);
    return st;
}
