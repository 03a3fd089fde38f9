/* Two commands at once in one place: none may damage what the other does; one may refuse. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

enum { WORDS = 40000 }; /* of the texts of which two data sets are made at once */

static char *const data_new[] = {"strobe",          "data", "tiny", "--from=text2", "--force",
                                 "--data_dir=data", NULL};
static char *const data_long[2][8] = {
    {"strobe", "data", "tiny", "--from=long1", "--force", "--data_dir=data"},
    {"strobe", "data", "tiny", "--from=long2", "--force", "--data_dir=data"}};
static char *long_set[2]; /* the sets that they make */
static double long_seconds;
/* A training that saves and removes a checkpoint at every iteration, and what reads it. */
static char *const train_busily[] = {
    "strobe",          "train", "run", "--init_from=resume", "--max_iters=100", "--eval_interval=1",
    "--data_dir=data", NULL};
static const struct subject busy_run = {"run", NULL, "end_busy/run", 100};
static char *const data_like_temporary[] = {"strobe",          "data", "tiny.tmp", "--from=text1",
                                            "--data_dir=data", NULL};

static void pause_for(double seconds)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * seconds)}, NULL);
}

static enum command command_of(const char *word)
{
    for (enum command c = 0; c < COMMANDS; c++)
        if (!strcmp(command_names[c], word)) return c;
    return TRAIN;
}

/* Starts both, the second a random moment after the first. */
static void run_both(struct worker *w, char *const *a, char *const *b, double delay,
                     struct outcome ret[2])
{
    struct process p[2];
    process_start(w, &(struct start){.words = a}, &p[0]);
    pause_for(delay);
    process_start(w, &(struct start){.words = b, .suffix = "2"}, &p[1]);
    for (int i = 0; i < 2; i++) process_wait(w, &p[i], &ret[i]);
    for (int i = 0; i < 2; i++)
        if (ret[i].code || ret[i].signal || ret[i].hung) {
            for (char *s = ret[i].err; (s = strstr(s, "--overwrite"));)
                memset(s, '-', strlen("--overwrite")); /* right here: there may be a run by now */
            judge_words(w, &ret[i], command_of((i ? b : a)[1]));
        }
}

static void judge_trained(struct worker *w, const struct outcome o[2], bool both_may)
{
    char why[256];
    if (o[0].code && o[1].code)
        report(w, FIND_STUCK, "both fail: %.100s | %.100s", o[0].err, o[1].err);
    else if (!o[0].code && !o[1].code && !both_may)
        report(w, FIND_BOTH, "both end with 0");
    if (!same_end(w, &the_run, why)) report(w, FIND_BITS, "%s", why);
}

/* The data set of a training was replaced while it ran: it read the old set or the new one, never a
 * mixture, or refused. Ends it with the set that it read. */
static void judge_which_set(struct worker *w, const struct outcome *o)
{
    char a[PATH_BYTES], b[PATH_BYTES], why[256];
    path_in(a, "%s/data/tiny/train.bin", w->dir);
    bool is_new = same_file(a, path_in(b, "%s/base/end_data/data/tiny/train.bin", settings.work));
    if (!o->code && !o->signal) {
        is_new = same_end(w, &run_of_text2, why);
        if (!is_new && !same_end(w, &the_run, why))
            report(w, FIND_BITS, "as of neither data set: %s", why);
    }
    copy_tree(path_in(b, "%s/base/%s/data", settings.work, is_new ? "end_data" : "plain"),
              path_in(a, "%s/data", w->dir));
    judge_finish_of(w, TRAIN, is_new ? &run_of_text2 : &the_run);
}

static bool is_running(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && !info.si_pid;
}

/* eval and sample, again and again, while a training saves and removes checkpoints. They succeed,
 * or say to try again; nothing is damaged. */
static void try_readers(struct worker *w, double share, struct outcome *o)
{
    enum { MOST = 40 };
    struct process training, reader;
    char why[256];
    process_start(w, &(struct start){.words = train_busily}, &training);
    pause_for(0.02 * share);
    for (int i = 0; i < MOST && is_running(training.pid) && !w->failed; i++) {
        enum command c = i % 2 ? SAMPLE : EVAL;
        process_start(w, &(struct start){.words = scene_words(c), .suffix = "2"}, &reader);
        process_wait(w, &reader, o);
        judge_words(w, o, c);
        if (o->code && !strstr(o->err, "again"))
            report(w, FIND_STUCK, "%s fails and does not say to try again: %.200s",
                   command_names[c], o->err);
    }
    process_wait(w, &training, o);
    judge_words(w, o, TRAIN);
    if (o->code) report(w, FIND_STUCK, "the training fails: %.200s", o->err);
    if (!same_end(w, &busy_run, why)) report(w, FIND_BITS, "%s", why);
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
    enum { DATA_DATA, TRAIN_TRAIN, DATA_TRAIN, RESUME_RESUME, READ_TRAIN, LIKE_TEMPORARY, KINDS };
    static const char *const names[] = {"data, data",  "train, train",
                                        "data, train", "resume, resume",
                                        "read, train", "data tiny, data tiny.tmp"};
    static char repeat[128];
    static struct outcome o[2];
    int kind = index < 2 * KINDS ? (int)(index % KINDS) : (int)(index % (KINDS - 1));
    uint64_t x = random_of(settings.seed, (uint64_t)index);
    double share = x & 1 ? 0 : (double)(x >> 11) * 0x1p-53; /* every other pair starts at once */
    snprintf(repeat, sizeof repeat, "pairs --at=%lld --seed=%llu  # %s", (long long)index + 1,
             (unsigned long long)settings.seed, names[kind]);
    w->repeat = repeat;
    copy_tree(scene_start(kind == RESUME_RESUME || kind == READ_TRAIN ? RESUME : DATA), w->dir);
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
        if (x & 2)
            run_both(w, scene_words(TRAIN), data_new, 0.1 * share, o);
        else
            run_both(w, data_new, scene_words(TRAIN), 0.05 * share, o);
        judge_data(w, NULL);
        judge_which_set(w, &o[x & 2 ? 0 : 1]);
        break;
    case RESUME_RESUME:
        run_both(w, scene_words(RESUME), scene_words(RESUME), 0.2 * share, o);
        judge_trained(w, o, true); /* the second may find the run finished */
        judge_finish(w, RESUME);
        break;
    case READ_TRAIN:
        try_readers(w, share, &o[0]);
        break;
    default:
        try_like_temporary(w);
    }
}

int mode_pairs(void)
{
    struct worker w = {.number = -1};
    static struct outcome o;
    char path[PATH_BYTES];
    path_in(w.dir, "%s/w", settings.work);
    path_in(w.side, "%s/side", settings.work);
    copy_tree(scene_start(RESUME), w.dir);
    run(&w, &(struct start){.words = train_busily}, &o);
    if (o.code) die("a training that saves often fails: %s", o.err);
    copy_tree(w.dir, path_in(path, "%s/base/end_busy", settings.work));
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
