#include "report/runs.h"

#include "base/file.h"
#include "base/lenient.h"
#include "base/record.h"
#include "base/stats.h"
#include "base/str.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *run_pair_find(const struct run_pair *pair, int n, const char *key)
{
    for (int i = 0; i < n; i++)
        if (strcmp(pair[i].key, key) == 0) return pair[i].value;
    return NULL;
}

/* --- config.conf: key = value ----------------------------------------------------------------- */

static char *trimmed(char *from, char *end)
{
    while (from < end && strchr(" \t\r", *from)) from++;
    while (end > from && strchr(" \t\r", end[-1])) end--;
    *end = '\0';
    return from;
}

static void parse_config(struct run *r, char *text, struct arena *a)
{
    int capacity = 0;
    for (char *line = text, *next; line; line = next) {
        char *end = strchrnul(line, '\n');
        next = *end ? end + 1 : NULL;
        line = trimmed(line, end);
        char *equals = strchr(line, '=');
        if (*line == '#' || !equals) continue;
        char *value = trimmed(equals + 1, strchr(equals + 1, '\0'));
        ARENA_GROW(a, r->setting, r->settings, capacity);
        r->setting[r->settings++] = (struct run_pair){trimmed(line, equals), value};
    }
}

/* --- env.json: strings, some in nested objects ------------------------------------------------ */

static const char *value_text(const json_t *value, struct arena *a)
{
    if (json_is_string(value)) return arena_strdup(a, json_string_value(value));
    if (json_is_integer(value)) return arena_printf(a, "%lld", json_integer_value(value));
    if (json_is_real(value)) return arena_printf(a, "%g", json_real_value(value));
    if (json_is_boolean(value)) return json_is_true(value) ? "true" : "false";
    return NULL;
}

static void flatten(struct run *r, json_t *object, const char *path, int *capacity, struct arena *a)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        const char *name = arena_printf(a, "%s%s", path, key);
        if (json_is_object(value)) flatten(r, value, arena_printf(a, "%s.", name), capacity, a);
        const char *text = value_text(value, a);
        if (!text || strcmp(name, "v") == 0) continue;
        ARENA_GROW(a, r->environment, r->environments, *capacity);
        r->environment[r->environments++] = (struct run_pair){name, text};
    }
}

/* --- telemetry -------------------------------------------------------------------------------- */

static void remember(double *last, double x)
{
    if (isfinite(x)) *last = x;
}

static void take_gauges(struct gauges *g, const json_t *line, int64_t iter, struct arena *a)
{
    struct gauge_reading p = {0};
    record_take(gauge_reading_record, line, &p, a);
    if (!g->points) g->clock_max_mhz = g->power_limit_w = NAN;
    if (!(p.ms > 0)) return;
    while (g->points && g->point[g->points - 1].iter > iter)
        g->points--; /* a resumed run repeats it */
    p.seconds = (g->points ? g->point[g->points - 1].seconds : 0) + p.ms * 1e-3;
    ARENA_GROW(a, g->point, g->points, g->capacity);
    g->point[g->points++] = p;
    remember(&g->clock_max_mhz, p.clock_max_mhz);
    remember(&g->power_limit_w, p.power_limit_w);
}

/* `at`: offset of a number in a reading. Sets the mean over time of the steady ones. */
static void fill_mean(const struct gauges *g, size_t at, double *to)
{
    double sum = 0, ms = 0;
    for (int i = 0; i < g->points && isnan(*to); i++) {
        double x = *(const double *)((const char *)&g->point[i] + at);
        if (!isfinite(x) || !g->point[i].steady) continue;
        sum += x * g->point[i].ms;
        ms += g->point[i].ms;
    }
    if (ms > 0) *to = sum / ms;
}

/* Sets what is unknown to the means over the steady readings. */
static void fill_gauges(const struct gauges *g, struct gauge_summary *to)
{
    for (size_t i = 0; i < GAUGE_VALUES; i++)
        fill_mean(g, offsetof(struct gauge_reading, value) + i * sizeof(double),
                  &to->value[i].mean);
    fill_mean(g, offsetof(struct gauge_reading, throttled), &to->throttled);
}

/* --- log.jsonl -------------------------------------------------------------------------------- */

static enum status check_version(json_t *object, const char *where)
{
    json_t *version = json_object_get(object, "v");
    if (json_is_integer(version) && json_integer_value(version) == RUN_VERSION) return ST_OK;
    if (!version)
        return fail(ST_FORMAT, "%s has no version \"v\": it is not a file of a run", where);
    return fail(ST_FORMAT,
                "%s has version %lld, but this program reads version %d: report on it with the "
                "strobe that wrote it",
                where, (long long)json_integer_value(version), RUN_VERSION);
}

struct log_reader {
    struct run *run;
    int step_capacity, eval_capacity, turn_capacity;
};

/* Adds a line of the log; a resumed run repeats iterations. */
#define TAKE(list, n, capacity, record)                  \
    do {                                                 \
        while ((n) && (list)[(n)-1].iter >= iter) (n)--; \
        ARENA_GROW(a, list, n, capacity);                \
        record_take(record, line, &(list)[(n)++], a);    \
    } while (0)

/* Lines without a kind or an iteration are ignored, as all that is unknown. */
static enum status take_line(struct log_reader *l, json_t *line, const char *where, struct arena *a)
{
    struct run *r = l->run;
    const char *kind = json_string_value(json_object_get(line, "kind"));
    double at = lenient_number(line, "iter");
    if (!kind || !isfinite(at)) return ST_OK;
    if (!lenient_is_count(at))
        return fail(ST_FORMAT,
                    "%s has iteration %g, which no run reaches: the file is damaged; to report "
                    "without that line, delete it",
                    where, at);
    int64_t iter = (int64_t)at;
    if (!strcmp(kind, "step")) TAKE(r->step, r->steps, l->step_capacity, run_step_record);
    if (!strcmp(kind, "eval")) TAKE(r->eval, r->evals, l->eval_capacity, run_eval_record);
    if (!strcmp(kind, "turn")) TAKE(r->turn, r->turns, l->turn_capacity, run_turn_record);
    if (!strcmp(kind, "sample")) take_gauges(&r->gauges, line, iter, a);
    return ST_OK;
}

/* Only the last line may be malformed: the program was killed while writing it. */
static enum status parse_log(struct run *r, const char *path, const char *text, int64_t size,
                             struct arena *a)
{
    struct log_reader reader = {.run = r};
    const char *end = text + size;
    int number = 0;
    for (const char *line = text, *next; line < end; line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        next = stop ? stop + 1 : end;
        number++;
        int64_t length = (stop ? stop : end) - line;
        if (length == 0) continue;
        json_t *object = lenient_object(line, length);
        if (!object && next == end) break;
        if (!object)
            return fail(ST_FORMAT, "%s line %d is not JSON: the file is damaged", path, number);
        char where[PATH_MAX + 32];
        snprintf(where, sizeof where, "%s line %d", path, number);
        enum status st = check_version(object, where);
        if (st == ST_OK) st = take_line(&reader, object, where, a);
        json_decref(object);
        TRY(st);
    }
    if (r->steps + r->evals == 0)
        return fail(ST_FORMAT,
                    "%s has no step and no evaluation yet, so there is nothing to report", path);
    return ST_OK;
}

/* --- summary.json ----------------------------------------------------------------------------- */

int run_warm_steps(const struct run *r)
{
    int n = 0;
    if (!r->steps) return 0;
    int64_t first = r->step[0].iter, updates = r->step[r->steps - 1].iter + 1 - first;
    while (r->step[n].iter - first < warm_up_of(updates)) n++;
    return n;
}

/* Statistics of a member of the steps without the first ones; the arena holds scratch. */
static struct stats stats_of_steps(const struct run *r, size_t member, struct arena *a)
{
    int n = 0;
    double *x = ARENA_NEW(a, double, r->steps + 1);
    for (int i = run_warm_steps(r); i < r->steps; i++) {
        memcpy(&x[n], (const char *)&r->step[i] + member, sizeof x[n]);
        n += isfinite(x[n]);
    }
    return stats_of(x, n);
}

static double median_of(const struct run *r, size_t member, struct arena *a)
{
    struct stats s = stats_of_steps(r, member, a);
    return s.n ? s.median : NAN;
}

/* The first iteration whose loss is not a number. */
static int64_t nan_iter_of(const struct run *r)
{
    int64_t first = -1;
    for (int i = 0; i < r->steps && first < 0; i++)
        if (!isfinite(r->step[i].loss)) first = r->step[i].iter;
    for (int i = 0; i < r->evals; i++)
        if (!isfinite(r->eval[i].val_loss + r->eval[i].train_loss) &&
            (first < 0 || r->eval[i].iter < first))
            return r->eval[i].iter;
    return first;
}

/* What the log tells; `f` has what the summary tells. */
static void derive_figures(const struct run *r, struct run_summary *f, struct arena *a)
{
    struct stats ms = stats_of_steps(r, offsetof(struct run_step, ms), a);
    record_take(run_summary_record, NULL, f, a);
    f->timed = ms.n;
    f->plan_flops = median_of(r, offsetof(struct run_step, plan_flops), a);
    f->plan_bytes = median_of(r, offsetof(struct run_step, plan_bytes), a);
    f->seconds = r->steps ? 0 : NAN;
    f->ms_median = ms.n ? ms.median : NAN;
    f->ms_std = ms.n > 1 ? ms.std : NAN;
    f->ms_spread = ms.n > 1 ? (ms.p75 - ms.p25) / 2 : NAN;
    f->tokens_per_s = ms.n ? r->plan.tokens / ms.median * 1e3 : NAN;
    f->run_tokens_per_s = ms.n ? r->plan.tokens / ms.mean * 1e3 : NAN;
    for (int i = 0; i < r->steps; i++) { /* with log_interval=10, a line stands for ten steps */
        int64_t before = i ? r->step[i - 1].iter : r->step[i].iter - 1;
        f->seconds += r->step[i].ms * 1e-3 * (double)(r->step[i].iter - before);
        if (!ms.n || isnan(f->tokens_per_s)) f->tokens_per_s = r->step[i].tokens_per_s;
    }
    for (int i = 0; i < r->evals; i++)
        if (isfinite(r->eval[i].val_loss))
            f->best_val_loss = fmin(f->best_val_loss, r->eval[i].val_loss);
    if (r->evals) {
        f->final_train_loss = r->eval[r->evals - 1].train_loss;
        f->final_val_loss = r->eval[r->evals - 1].val_loss;
    }
    /* A step's iter counts the updates before it, an evaluation's those so far. */
    int64_t stepped = r->steps ? r->step[r->steps - 1].iter + 1 : 0;
    int64_t evaluated = r->evals ? r->eval[r->evals - 1].iter : 0;
    f->iters = stepped > evaluated ? stepped : evaluated;
    f->nan_iter = nan_iter_of(r);
}

/* What summary.json (NULL: there is none) has, else what the log tells. */
static void find_figures(struct run *r, const json_t *summary, struct arena *a)
{
    struct run_summary log, *f = &r->figures;
    derive_figures(r, &log, a);
    *f = log;
    record_take(run_summary_record, summary, f, a);
    record_fill(run_summary_record, f, &log);
    if (f->iters < 0) f->iters = log.iters;
    if (isnan(f->peak_measured)) f->peak_measured = f->peak_rss;
    if (str_same(f->end, "nan") && f->nan_iter < 0) f->nan_iter = f->iters;
    struct gauge_summary *g = &f->gauges;
    bool few = json_is_null(json_object_get(summary, "gauges"));
    if (!few) fill_gauges(&r->gauges, g);
    if (isnan(g->joules_per_token))
        g->joules_per_token = g->value[GAUGE_POWER].mean / f->run_tokens_per_s;
}

/* --- the directory ---------------------------------------------------------------------------- */

/* `strict`: its version is required. *ret_object is NULL if there is no such file. */
static enum status read_object(const char *path, bool strict, struct arena *a, json_t **ret_object)
{
    *ret_object = NULL;
    if (!file_exists(path)) return ST_OK;
    char *data;
    int64_t size;
    TRY(file_read(path, a, &data, &size));
    json_t *object = lenient_object(data, size);
    if (!object)
        return fail(ST_FORMAT, "%s is not a JSON object; to report without it, delete it", path);
    bool check = strict || json_object_get(object, "v");
    enum status st = check ? check_version(object, path) : ST_OK;
    if (st == ST_OK)
        *ret_object = object;
    else
        json_decref(object);
    return st;
}

static enum status read_text(const char *path, struct arena *a, char **ret_text)
{
    *ret_text = NULL;
    if (!file_exists(path)) return ST_OK;
    char *data;
    int64_t size;
    TRY(file_read(path, a, &data, &size));
    *ret_text = lenient_utf8(data, size, a);
    return ST_OK;
}

/* `dir`: its bytes; those of r->dir are text. */
static enum status read_log(struct run *r, const char *dir, struct arena *a)
{
    char *path = arena_printf(a, "%s/log.jsonl", dir), *data;
    int64_t size;
    if (!file_exists(path))
        return fail(ST_IO, "%s has no log.jsonl: it is not a run directory of `strobe train`",
                    r->dir);
    TRY(file_read(path, a, &data, &size));
    if (size == 0) return fail(ST_FORMAT, "%s is empty: the run has no step yet", path);
    return parse_log(r, path, data, size, a);
}

static enum status run_read(const char *dir, struct arena *a, struct run *ret_run)
{
    char full[PATH_MAX];
    if (!realpath(dir, full)) return fail(ST_IO, "%s: %s", dir, strerror(errno));
    if (!file_is_dir(full))
        return fail(ST_USAGE, "%s is a file; name the run directory that contains it", dir);
    struct run r = {.dir = lenient_utf8(dir, (int64_t)strlen(dir), a)};
    const char *slash = strrchr(full, '/');
    r.name = lenient_utf8(slash + 1, (int64_t)strlen(slash + 1), a);
    TRY(read_log(&r, dir, a));

    char *text;
    TRY(read_text(arena_printf(a, "%s/config.conf", dir), a, &text));
    if (text) parse_config(&r, text, a);
    TRY(read_text(arena_printf(a, "%s/samples.txt", dir), a, &text));
    r.samples = text;

    json_t *object;
    int capacity = 0;
    TRY(read_object(arena_printf(a, "%s/env.json", dir), false, a, &object));
    if (object) flatten(&r, object, "", &capacity, a);
    json_decref(object);
    TRY(read_object(arena_printf(a, "%s/vocabulary.json", dir), false, a, &object));
    r.val_sha256 = lenient_text(json_object_get(object, "val"), "sha256", a);
    r.vocabulary_sha256 = lenient_text(object, "vocabulary_sha256", a);
    json_decref(object);
    TRY(read_object(arena_printf(a, "%s/plan.json", dir), true, a, &object));
    record_take(facts_record, object, &r.plan, a);
    json_decref(object);
    TRY(read_object(arena_printf(a, "%s/summary.json", dir), true, a, &object));
    find_figures(&r, object, a);
    json_decref(object);
    *ret_run = r;
    return ST_OK;
}

enum status runs_read(char *const *dirs, int n, struct arena *a, struct run **ret_runs)
{
    struct run *runs = ARENA_NEW(a, struct run, n);
    for (int i = 0; i < n; i++) TRY(run_read(dirs[i], a, &runs[i]));
    bool *shared = ARENA_NEW(a, bool, n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (i != j && strcmp(runs[i].name, runs[j].name) == 0) shared[i] = true;
    for (int i = 0; i < n; i++)
        if (shared[i]) runs[i].name = runs[i].dir;
    *ret_runs = runs;
    return ST_OK;
}
