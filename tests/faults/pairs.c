/* Two commands at once in one place: none may damage what the other does; one may refuse. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS = 40000 }; /* of the texts of which two data sets are made at once */

static char *const data_old[] = {"strobe",          "data", "tiny", "--from=text1", "--force",
                                 "--data_dir=data", NULL};
static char *const data_new[] = {"strobe",          "data", "tiny", "--from=text2", "--force",
                                 "--data_dir=data", NULL};
static char *const data_long[2][8] = {
    {"strobe", "data", "tiny", "--from=long1", "--force", "--data_dir=data"},
    {"strobe", "data", "tiny", "--from=long2", "--force", "--data_dir=data"}};
static char *long_set[2]; /* the sets that they make */
static double long_seconds;
static char *const data_like_temporary[] = {"strobe",          "data", "tiny.tmp", "--from=text1",
                                            "--data_dir=data", NULL};

static void pause_for(double seconds)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * seconds)}, NULL);
}

/* Starts both, the second a random moment after the first. */
static void run_both(struct worker *w, char *const *a, char *const *b, double delay,
                     struct outcome ret[2])
{
    struct process p[2];
    process_start(w, &(struct start){.words = a}, &p[0]);
    pause_for(delay);
    process_start(w, &(struct start){.words = b, .suffix = "2"}, &p[1]);
    for (int i = 0; i < 2; i++) {
        process_wait(w, &p[i], &ret[i]);
    }
    for (int i = 0; i < 2; i++)
        if (ret[i].code || ret[i].signal || ret[i].hung) {
            char *advice = strstr(ret[i].err, "--overwrite");
            if (advice) *advice = '\0'; /* right here: there may be a run by now */
            judge_words(w, &ret[i], strcmp((i ? b : a)[1], "data") ? TRAIN : DATA);
        }
}

static void judge_trained(struct worker *w, const struct outcome o[2], bool both_may)
{
    char why[256];
    if (o[0].code && o[1].code)
        report(w, FIND_STUCK, "both fail: %.100s | %.100s", o[0].err, o[1].err);
    else if (!o[0].code && !o[1].code && !both_may)
        report(w, FIND_BOTH, "both end with 0");
    if (!same_end(w, why)) report(w, FIND_BITS, "%s", why);
}

static void judge_long(struct worker *w)
{
    char path[PATH_BYTES];
    path_in(path, "%s/data/tiny", w->dir);
    char *set = exists(path) ? list_tree(path, true) : strdup("");
    if (strcmp(set, long_set[0]) != 0 && strcmp(set, long_set[1]) != 0)
        report(w, FIND_LOST, "the data set is %s", *set ? "damaged" : "gone");
    free(set);
}

static void try_two_sets(struct worker *w, double share, struct outcome o[2])
{
    write_text(w->dir, "long1", 3, WORDS);
    write_text(w->dir, "long2", 4, WORDS);
    run(w, &(struct start){.words = data_long[0]}, &o[0]);
    run_both(w, data_long[0], data_long[1], share * long_seconds, o);
    judge_long(w);
    if (o[0].code && o[1].code)
        report(w, FIND_STUCK, "both fail: %.100s | %.100s", o[0].err, o[1].err);
    run(w, &(struct start){.words = data_long[1]}, &o[0]);
    char *left = list_tree(w->dir, false);
    if (o[0].code || strstr(left, ".tmp") || strstr(left, ".old"))
        report(w, o[0].code ? FIND_STUCK : FIND_LEFT, "%.200s",
               o[0].code ? o[0].err : strstr(left, "data/"));
    free(left);
}

/* A set whose name looks like a temporary one of the other. */
static void try_like_temporary(struct worker *w)
{
    static struct outcome o;
    char path[PATH_BYTES];
    run(w, &(struct start){.words = data_like_temporary}, &o);
    char *before = list_tree(path_in(path, "%s/data/tiny.tmp", w->dir), true);
    run(w, &(struct start){.words = data_new}, &o);
    judge_data(w, &o);
    char *after = exists(path) ? list_tree(path, true) : strdup("");
    if (strcmp(before, after) != 0) report(w, FIND_LOST, "the set named tiny.tmp is gone");
    free(before);
    free(after);
}

static void try(struct worker *w, int64_t index)
{
    enum { DATA_DATA, TRAIN_TRAIN, DATA_TRAIN, RESUME_RESUME, LIKE_TEMPORARY, KINDS };
    static const char *const names[] = {"data, data", "train, train", "data, train",
                                        "resume, resume", "data tiny, data tiny.tmp"};
    static char repeat[128];
    static struct outcome o[2];
    int kind = index < 2 * KINDS ? (int)(index % KINDS) : (int)(index % (KINDS - 1));
    uint64_t x = random_of(settings.seed, (uint64_t)index);
    double share = x & 1 ? 0 : (double)(x >> 11) * 0x1p-53; /* every other pair starts at once */
    snprintf(repeat, sizeof repeat, "pairs --at=%lld --seed=%llu  # %s", (long long)index + 1,
             (unsigned long long)settings.seed, names[kind]);
    w->repeat = repeat;
    copy_tree(scene_start(kind == RESUME_RESUME ? RESUME : DATA), w->dir);
    switch (kind) {
    case DATA_DATA:
        try_two_sets(w, share, o);
        break;
    case TRAIN_TRAIN:
        run_both(w, scene_words(TRAIN), scene_words(TRAIN), 0.2 * share, o);
        judge_trained(w, o, false);
        judge_finish(w, TRAIN);
        break;
    case DATA_TRAIN:
        run_both(w, scene_words(TRAIN), data_old, 0.2 * share, o);
        judge_data(w, NULL);
        judge_finish(w, TRAIN);
        break;
    case RESUME_RESUME:
        run_both(w, scene_words(RESUME), scene_words(RESUME), 0.2 * share, o);
        judge_trained(w, o, true); /* the second may find the run finished */
        judge_finish(w, RESUME);
        break;
    default:
        try_like_temporary(w);
    }
}

int mode_pairs(void)
{
    struct worker w = {.number = -1};
    struct outcome o;
    char path[PATH_BYTES];
    path_in(w.dir, "%s/w", settings.work);
    path_in(w.side, "%s/side", settings.work);
    copy_tree(scene_start(DATA), w.dir);
    for (int i = 0; i < 2; i++) {
        write_text(w.dir, i ? "long2" : "long1", (uint64_t)(3 + i), WORDS);
        run(&w, &(struct start){.words = data_long[i]}, &o);
        if (o.code) die("a longer data set is not made: %s", o.err);
        long_set[i] = list_tree(path_in(path, "%s/data/tiny", w.dir), true);
        long_seconds = o.seconds;
    }
    return run_trials("pairs", settings.limit ? settings.limit : 400, try);
}
