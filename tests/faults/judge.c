/* Whether a disturbed command said what happened and lost nothing. */
#include "driver.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words */

static int sentences(const char *err, char first[256])
{
    int n = 0;
    first[0] = '\0';
    for (const char *s = err; *s; s += strcspn(s, "\n") + (strchr(s, '\n') != NULL)) {
        if (strncmp(s, "strobe: ", 8) || !strncmp(s, "strobe: warning: ", 17)) continue;
        if (n++ == 0) snprintf(first, 256, "%.*s", (int)strcspn(s, "\n"), s);
    }
    return n;
}

/* What matters of the output: from the sentence on, or its last words. */
static const char *tail(const char *err)
{
    static char text[300];
    const char *from = strstr(err, "strobe: ");
    if (!from) from = strstr(err, "terminate called");
    if (!from) from = strlen(err) > 150 ? err + strlen(err) - 150 : err;
    snprintf(text, sizeof text, "%s", from);
    for (char *s = text; *s; s++)
        if (*s == '\n') *s = s[1] ? '|' : '\0';
    return text;
}

/* Sentences that are wrong after a failed call, since the command's folder has what they deny, or
 * lead the user to delete what is only unreadable. */
static const char *wrong_advice(const char *err, enum command c)
{
    enum { OF_RESUME = 1 << RESUME, OF_REPORT = 1 << REPORT, OF_COMPARE = 1 << COMPARE };
    enum { OF_RUN = 1 << EVAL | 1 << SAMPLE, ANY = (1 << COMMANDS) - 1 };
    static const struct {
        const char *words;
        unsigned commands; /* whose folder has the data set, the run or its checkpoints */
    } wrong[] = {{"--overwrite", ANY},
                 {"--force", ANY},
                 {"already exists", ANY},
                 {"does not exist", ANY},
                 {"not a directory", ANY},
                 {"no data set", ANY},
                 {"there is no file", ANY},
                 {"already contains a run", OF_RESUME | OF_COMPARE},
                 {"contains no run", OF_RESUME | OF_COMPARE},
                 {"neither a run directory", OF_RUN},
                 {"has no checkpoint yet", OF_RUN | OF_RESUME | OF_COMPARE},
                 {"has no evaluated checkpoint yet", OF_RUN},
                 {"not a run directory", OF_REPORT | OF_COMPARE},
                 {"is a file; name the run", OF_REPORT | OF_COMPARE}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if ((wrong[i].commands >> c & 1) && strstr(err, wrong[i].words)) return wrong[i].words;
    return NULL;
}

void judge_words(struct worker *w, const struct outcome *o, enum command c)
{
    static const char *const damaged[] = {"corrupt", "damaged", "is missing", "incomplete",
                                          "not valid JSON"};
    char first[256];
    int n = sentences(o->err, first);
    if (o->hung) {
        report(w, FIND_HANG, "%s", tail(o->err));
        return;
    }
    if (strstr(o->err, "BUG at"))
        report(w, FIND_BUG, "%s", tail(o->err));
    else if (o->signal)
        report(w, FIND_SIGNAL, "signal %d: %s", o->signal, tail(o->err));
    else if (o->code && !n)
        report(w, FIND_WORDLESS, "exit code %d: %s", o->code, tail(o->err));
    /* One of each of the two trainings of compare, which take turns; it adds which one failed. */
    else if (n > (c == COMPARE ? 3 : 1))
        report(w, FIND_WORDY, "%s", tail(o->err));
    const char *advice = wrong_advice(o->err, c);
    if (advice) report(w, FIND_ADVICE, "'%s' in: %s", advice, tail(o->err));
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++)
        if (strstr(o->err, damaged[i])) {
            report(w, FIND_DAMAGED, "%s", tail(o->err));
            break;
        }
}

/* ---- a run */

/* The log without what depends on the clock; "" if there is none. To be freed. */
static char *timeless(const char *run)
{
    char path[PATH_BYTES], *text, *log = read_whole(path_in(path, "%s/log.jsonl", run), NULL);
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    for (char *line = log; line && *line;) {
        char *end = strchr(line, '\n');
        if (end) *end = '\0';
        char *ms = strstr(line, ",\"ms\":");
        if (!strstr(line, "\"kind\":\"sample\"") && !strstr(line, "\"kind\":\"turn\"") &&
            !strstr(line, "\"kind\":\"wall\"")) {
            if (ms) *ms = '\0';
            fprintf(f, "%s%s", line, end ? "\n" : "");
        }
        line = end ? end + 1 : NULL;
    }
    fclose(f);
    free(log);
    return text;
}

static bool is_done(const struct worker *w, const struct subject *s, int iter)
{
    char path[PATH_BYTES];
    return exists(path_in(path, "%s/%s/ckpt/%06d/DONE", w->dir, s->run, iter)) &&
           exists(path_in(path, "%s/%s/ckpt/%06d/state.json", w->dir, s->run, iter));
}

static bool checkpoint_is_whole(const struct worker *w, const struct subject *s, int iter)
{
    static const char *const files[] = {"model.safetensors", "optimizer.safetensors"};
    char a[PATH_BYTES], b[PATH_BYTES];
    for (int i = 0; i < 2; i++) {
        path_in(a, "%s/%s/ckpt/%06d/%s", w->dir, s->run, iter, files[i]);
        path_in(b, "%s/base/%s/%06d/%s", settings.work, s->saved, iter, files[i]);
        if (!same_file(a, b)) return false;
    }
    return is_done(w, s, iter);
}

/* The newest checkpoint that equals the undisturbed run's; 0: none. */
static int newest_checkpoint(const struct worker *w, const struct subject *s)
{
    for (int iter = LAST; iter > 0; iter -= EVERY)
        if (checkpoint_is_whole(w, s, iter)) return iter;
    return 0;
}

/* The iteration that the log shows to be saved: a later step is recorded. */
static int reported_checkpoint(const char *run)
{
    char *log = timeless(run);
    int last = 0, iter;
    for (char *s = log; (s = strstr(s, "\"kind\":\"step\",\"iter\":")); s++)
        if (sscanf(s, "\"kind\":\"step\",\"iter\":%d,", &iter) == 1 && iter > last) last = iter;
    free(log);
    return last / EVERY * EVERY;
}

/* The iteration up to `newest` with the lowest validation loss in the undisturbed log; 0 has no
 * checkpoint. */
static int best_checkpoint(const struct subject *s, int newest)
{
    char path[PATH_BYTES];
    char *log = timeless(path_in(path, "%s/base/%s", settings.work, s->end));
    double best = INFINITY, train, val;
    int iter, ret = 0;
    for (char *at = log; (at = strstr(at, "\"kind\":\"eval\"")); at++)
        if (sscanf(at, "\"kind\":\"eval\",\"iter\":%d,\"train_loss\":%lf,\"val_loss\":%lf", &iter,
                   &train, &val) == 3 &&
            iter <= newest && val < best)
            best = val, ret = iter;
    free(log);
    return ret;
}

bool same_end(const struct worker *w, const struct subject *s, char why[256])
{
    char ckpt[2][64];
    snprintf(ckpt[0], sizeof ckpt[0], "ckpt/%06d/model.safetensors", s->last);
    snprintf(ckpt[1], sizeof ckpt[1], "ckpt/%06d/optimizer.safetensors", s->last);
    const char *const files[] = {ckpt[0], ckpt[1], "samples.txt"};
    char run[PATH_BYTES], want[PATH_BYTES], a[PATH_BYTES], b[PATH_BYTES];
    path_in(run, "%s/%s", w->dir, s->run);
    path_in(want, "%s/base/%s", settings.work, s->end);
    for (int i = 0; i < 3; i++)
        if (!same_file(path_in(a, "%s/%s", run, files[i]), path_in(b, "%s/%s", want, files[i]))) {
            snprintf(why, 256, "%s differs", files[i]);
            return false;
        }
    char *x = timeless(run), *y = timeless(want);
    bool same = !strcmp(x, y);
    if (!same) snprintf(why, 256, "log.jsonl differs: %zu bytes for %zu", strlen(x), strlen(y));
    free(x);
    free(y);
    return same;
}

static void judge_checkpoints(struct worker *w, const struct subject *s, int floor)
{
    char run[PATH_BYTES];
    path_in(run, "%s/%s", w->dir, s->run);
    int newest = newest_checkpoint(w, s), reported = reported_checkpoint(run);
    if (reported < floor) reported = floor;
    if (newest < reported)
        report(w, FIND_LOST, "the newest checkpoint is %d, but %d was saved", newest, reported);
    int best = best_checkpoint(s, newest);
    if (best && !checkpoint_is_whole(w, s, best))
        report(w, FIND_LOST_BEST, "checkpoint %d, the best up to %d, is gone", best, newest);
}

void judge_run(struct worker *w, const struct subject *s, const struct outcome *o, int floor,
               bool once)
{
    char needle[PATH_BYTES];
    const char *from = strstr(o->err, path_in(needle, "continuing from %s/", s->run));
    w->warned = strstr(o->err, "warning") != NULL;
    judge_checkpoints(w, s, floor);
    if (floor && (strstr(o->err, "starting from iteration 0") || strstr(o->err, "no run to")))
        report(w, FIND_ANEW, "%s", tail(o->err));
    if (floor && from) {
        char line[PATH_BYTES];
        path_in(line, "%.*s", (int)strcspn(from, "\n"), from);
        const char *number = strstr(line, "ckpt/");
        if (once && number && atoi(number + 5) < floor)
            report(w, FIND_OLDER, "took checkpoint %d, not %d", atoi(number + 5), floor);
    }
    char why[256];
    if (o->code == 0 && !o->signal && !same_end(w, s, why)) report(w, FIND_SILENT, "%s", why);
}

/* ---- a data set */

static char *set_in(const char *dir)
{
    char path[PATH_BYTES];
    path_in(path, "%s/data/tiny", dir);
    return exists(path) ? list_tree(path, true) : strdup("");
}

void judge_data(struct worker *w, const struct outcome *o)
{
    char path[PATH_BYTES];
    char *set = set_in(w->dir), *old = set_in(path_in(path, "%s/base/plain", settings.work)),
         *new = set_in(path_in(path, "%s/base/end_data", settings.work));
    bool is_old = !strcmp(set, old), is_new = !strcmp(set, new);
    if (o && o->code == 0 && !o->signal && !is_new)
        report(w, FIND_SILENT, "exit code 0, but the data set is not the new one");
    else if (!is_old && !is_new)
        report(w, FIND_LOST, "the data set is %s", *set ? "damaged" : "gone");
    free(set);
    free(old);
    free(new);
}

/* ---- the end */

/* The iteration of "RUN/ckpt/NNNNNN/" and of the names of a checkpoint's files below it; 0: it is
 * another name, for example that of a temporary folder or file. */
static int iteration_of(const struct subject *s, const char *name)
{
    static const char *const files[] = {"", "DONE", "state.json", "model.safetensors",
                                        "optimizer.safetensors"};
    size_t n = strlen(s->run);
    if (strncmp(name, s->run, n) != 0 || strncmp(name + n, "/ckpt/", 6) != 0) return 0;
    name += n + 6;
    if (strspn(name, "0123456789") != 6 || name[6] != '/') return 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!strcmp(name + 7, files[i])) return atoi(name);
    return 0;
}

/* Whether "+page.html.0123456789ab.tmp" is what a page's writer could not remove: the page lies
 * anywhere, so no one holds a lock to clean up under. docs/RELIABILITY.md says who deletes it. */
static bool is_temporary_page(const char *word)
{
    static const char page[] = "+page.html.";
    enum { PAGE = sizeof page - 1, DIGITS = 12 };
    return !strncmp(word, page, PAGE) && strspn(word + PAGE, "0123456789abcdef") == DIGITS &&
           !strcmp(word + PAGE + DIGITS, ".tmp");
}

/* Whether a name may differ: that of a temporary page, that of a checkpoint, since a run that was
 * disturbed keeps others, and if the run had already ended (`ended`) that of its page, which is
 * made last and only then. */
static bool may_differ(struct worker *w, const struct subject *s, bool ended, const char *word)
{
    char page[PATH_BYTES];
    if (is_temporary_page(word)) return true;
    if (!s) return false;
    int iter = iteration_of(s, word + 1);
    if (iter) { /* one between those of `saved` was saved because a call failed */
        bool compared = s->saved && iter % EVERY == 0;
        return *word == '-' || (compared ? checkpoint_is_whole(w, s, iter) : is_done(w, s, iter));
    }
    return ended && !strcmp(word, path_in(page, "-%s/report.html", s->run));
}

static void report_left(struct worker *w, const struct subject *s, bool ended, char *difference)
{
    char kept[2048] = "";
    for (char *word = strtok(difference, " "); word; word = strtok(NULL, " ")) {
        if (may_differ(w, s, ended, word)) continue;
        size_t n = strlen(kept);
        snprintf(kept + n, sizeof kept - n, "%s%s", n ? " " : "", word);
    }
    if (*kept) report(w, FIND_LEFT, "%s", kept);
}

/* A save leaves the newest checkpoint, the best one and a spare. If the disturbed command had made
 * the last save, none came after it: what it could not remove is still there, one if it was stopped
 * and did not say so. */
static void judge_count(struct worker *w, const struct subject *s, bool ended)
{
    enum { KEPT = 3 };
    int n = 0, most = !ended ? KEPT : w->warned ? SAVED : KEPT + 1;
    for (int iter = 1; iter <= LAST; iter++) n += is_done(w, s, iter);
    if (n > most) report(w, FIND_LEFT, "%d checkpoints are left", n);
}

static void judge_names(struct worker *w, enum command c, const struct subject *s, bool ended)
{
    char path[PATH_BYTES];
    enum command end = c == RESUME ? TRAIN : c;
    char *want =
             list_tree(path_in(path, "%s/base/end_%s", settings.work, command_names[end]), false),
         *have = list_tree(w->dir, false);
    char *difference = list_difference(want, have);
    report_left(w, s, ended, difference);
    if (s) judge_count(w, s, ended);
    free(want);
    free(have);
    free(difference);
}

static bool page_is_whole(const char *path)
{
    size_t n = 0;
    char *page = read_whole(path, &n);
    while (n && page[n - 1] == '\n') n--;
    bool whole = n > 7 && !memcmp(page + n - 7, "</html>", 7);
    free(page);
    return whole;
}

void judge_output(struct worker *w, enum command c, const struct outcome *o)
{
    char a[PATH_BYTES], b[PATH_BYTES];
    path_in(a, "%s/%s", w->dir, c == REPORT ? "page.html" : "both/report.html");
    bool is_there = (c == REPORT || c == COMPARE) && exists(a);
    if (is_there && !page_is_whole(a)) report(w, FIND_SILENT, "the page has no end");
    if (o->code || o->signal || strstr(o->err, "warning")) return;
    char *out = scene_timeless(c, o->out);
    const char *have = out, *want = scene_expected(c);
    for (size_t n; *have && (n = strcspn(have, "\n") + 1, !strncmp(have, want, n)); want += n)
        have += n;
    if (strcmp(have, want) != 0)
        report(w, FIND_SILENT, "exit code 0, no warning, but the output has '%.*s', not '%.*s'",
               (int)strcspn(have, "\n"), have, (int)strcspn(want, "\n"), want);
    free(out);
    if (c == COMPARE && !is_there) report(w, FIND_SILENT, "exit code 0, but there is no page");
    if (c == REPORT && !same_file(a, path_in(b, "%s/base/end_report/page.html", settings.work)))
        report(w, FIND_SILENT, "exit code 0, no warning, but the page differs");
}

void judge_finish(struct worker *w, enum command c)
{
    bool trains = c == TRAIN || c == RESUME;
    judge_finish_of(w, c, trains ? &the_run : c == COMPARE ? &compared_run : NULL);
}

void judge_finish_of(struct worker *w, enum command c, const struct subject *s)
{
    static struct outcome o;
    char why[256];
    bool ended = s && is_done(w, s, LAST);
    if (!scene_finish(w, c, &o)) {
        report(w, FIND_STUCK, "%s", tail(o.err));
        return;
    }
    if (c == DATA) judge_data(w, &o);
    if (c >= EVAL) judge_output(w, c, &o);
    if (s && !same_end(w, s, why))
        report(w, strstr(why, "log.jsonl") ? FIND_LOG : FIND_BITS, "after the next run, %s", why);
    if (s && s->saved) judge_checkpoints(w, s, LAST);
    judge_names(w, c, s, ended);
}
