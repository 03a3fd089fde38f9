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

void judge_words(struct worker *w, const struct outcome *o, bool reading)
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
    else if (n > (reading ? 2 : 1)) /* compare adds which of its trainings failed */
        report(w, FIND_WORDY, "%s", tail(o->err));
    if (strstr(o->err, "--overwrite")) report(w, FIND_ADVICE, "%s", tail(o->err));
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
        if (!strstr(line, "\"kind\":\"sample\"") && !strstr(line, "\"kind\":\"turn\"")) {
            if (ms) *ms = '\0';
            fprintf(f, "%s%s", line, end ? "\n" : "");
        }
        line = end ? end + 1 : NULL;
    }
    fclose(f);
    free(log);
    return text;
}

static bool checkpoint_is_whole(const char *run, int iter)
{
    static const char *const files[] = {"model.safetensors", "optimizer.safetensors"};
    char a[PATH_BYTES], b[PATH_BYTES];
    for (int i = 0; i < 2; i++)
        if (!same_file(path_in(a, "%s/ckpt/%06d/%s", run, iter, files[i]),
                       path_in(b, "%s/base/saved/%06d/%s", settings.work, iter, files[i])))
            return false;
    return exists(path_in(a, "%s/ckpt/%06d/DONE", run, iter)) &&
           exists(path_in(a, "%s/ckpt/%06d/state.json", run, iter));
}

int newest_checkpoint(const char *run)
{
    for (int iter = LAST; iter > 0; iter -= EVERY)
        if (checkpoint_is_whole(run, iter)) return iter;
    return 0;
}

int reported_checkpoint(const char *run)
{
    char *log = timeless(run);
    int last = 0, iter;
    for (char *s = log; (s = strstr(s, "\"kind\":\"step\",\"iter\":")); s++)
        if (sscanf(s, "\"kind\":\"step\",\"iter\":%d,", &iter) == 1 && iter > last) last = iter;
    free(log);
    return last / EVERY * EVERY;
}

/* The iteration up to `newest` with the lowest validation loss in the undisturbed log. */
static int best_checkpoint(int newest)
{
    char path[PATH_BYTES];
    char *log = timeless(path_in(path, "%s/base/end_train/run", settings.work));
    double best = INFINITY, train, val;
    int iter, ret = 0;
    for (char *s = log; (s = strstr(s, "\"kind\":\"eval\"")); s++)
        if (sscanf(s, "\"kind\":\"eval\",\"iter\":%d,\"train_loss\":%lf,\"val_loss\":%lf", &iter,
                   &train, &val) == 3 &&
            iter > 0 && iter <= newest && val < best)
            best = val, ret = iter;
    free(log);
    return ret;
}

bool same_end(const struct worker *w, char why[256])
{
    static const char *const files[] = {"ckpt/000020/model.safetensors",
                                        "ckpt/000020/optimizer.safetensors", "samples.txt"};
    char run[PATH_BYTES], want[PATH_BYTES], a[PATH_BYTES], b[PATH_BYTES];
    path_in(run, "%s/run", w->dir);
    path_in(want, "%s/base/end_train/run", settings.work);
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

static void judge_checkpoints(struct worker *w, int floor)
{
    char run[PATH_BYTES];
    path_in(run, "%s/run", w->dir);
    int newest = newest_checkpoint(run), reported = reported_checkpoint(run);
    if (reported < floor) reported = floor;
    if (newest < reported)
        report(w, FIND_LOST, "the newest checkpoint is %d, but %d was saved", newest, reported);
    int best = best_checkpoint(newest);
    if (best && !checkpoint_is_whole(run, best))
        report(w, FIND_LOST_BEST, "checkpoint %d, the best up to %d, is gone", best, newest);
}

void judge_run(struct worker *w, const struct outcome *o, int floor, bool once)
{
    const char *from = strstr(o->err, "continuing from ");
    judge_checkpoints(w, floor);
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
    if (o->code == 0 && !o->signal && !same_end(w, why)) report(w, FIND_SILENT, "%s", why);
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

/* Reports names that differ, except the page, which is made last and may be missing, and whole
 * checkpoints: a run that saved when a call failed keeps others. */
static void report_left(struct worker *w, char *difference)
{
    char kept[2048] = "", done[PATH_BYTES];
    for (char *word = strtok(difference, " "); word; word = strtok(NULL, " ")) {
        int iter = strncmp(word, "+run/ckpt/", 10) == 0 ? atoi(word + 10) : 0;
        if (!strcmp(word, "-run/report.html") || !strncmp(word, "-run/ckpt/", 10)) continue;
        if (iter && exists(path_in(done, "%s/run/ckpt/%06d/DONE", w->dir, iter))) continue;
        size_t n = strlen(kept);
        snprintf(kept + n, sizeof kept - n, "%s%s", n ? " " : "", word);
    }
    if (*kept) report(w, FIND_LEFT, "%s", kept);
}

static void judge_names(struct worker *w, enum command c)
{
    char path[PATH_BYTES];
    enum command end = c == RESUME ? TRAIN : c;
    char *want =
             list_tree(path_in(path, "%s/base/end_%s", settings.work, command_names[end]), false),
         *have = list_tree(w->dir, false);
    char *difference = list_difference(want, have);
    report_left(w, difference);
    free(want);
    free(have);
    free(difference);
}

void judge_finish(struct worker *w, enum command c)
{
    struct outcome o;
    char why[256];
    if (!scene_finish(w, c, &o)) {
        report(w, FIND_STUCK, "%s", tail(o.err));
        return;
    }
    if (c == DATA)
        judge_data(w, &o);
    else if ((c == TRAIN || c == RESUME) && !same_end(w, why))
        report(w, strstr(why, "log.jsonl") ? FIND_LOG : FIND_BITS, "after the next run, %s", why);
    if (c == TRAIN || c == RESUME) judge_checkpoints(w, LAST);
    judge_names(w, c);
}
