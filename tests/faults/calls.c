/* The n-th call of a kind fails, once or from then on, for every n. */
#include "driver.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct trial {
    enum command command;
    struct fault fault;
    int64_t rank; /* of a sample: among those of the same command and call */
};

static struct trial *trial;
static int64_t trials;

/* The errors that a call may return, ended by 0; those of `on` persist. */
static const int once[FAULTS_CALLS][6] = {
    [FAULTS_OPEN] = {EIO, EACCES, EMFILE, EINTR},
    [FAULTS_OPENDIR] = {EIO, EACCES, EMFILE, ENOMEM},
    [FAULTS_READ] = {EIO, EINTR, FAULTS_SHORT},
    [FAULTS_WRITE] = {ENOSPC, EIO, EINTR, FAULTS_SHORT},
    [FAULTS_SYNC] = {EIO, ENOSPC, EINTR},
    [FAULTS_RENAME] = {EIO, EACCES, ENOSPC},
    [FAULTS_LINK] = {EIO, EACCES, ENOSPC},
    [FAULTS_STAT] = {EIO, EACCES, ENOMEM},
    [FAULTS_READDIR] = {EIO},
    [FAULTS_MMAP] = {ENOMEM},
    [FAULTS_UNLINK] = {EIO, EACCES},
    [FAULTS_MKDIR] = {EACCES, ENOSPC},
    [FAULTS_MALLOC] = {ENOMEM},
    [FAULTS_LIBRARY] = {ENOMEM},
};
static const int on[FAULTS_CALLS][4] = {
    [FAULTS_OPEN] = {EIO, EACCES, EMFILE},
    [FAULTS_OPENDIR] = {EIO, EACCES},
    [FAULTS_READ] = {EIO},
    [FAULTS_WRITE] = {ENOSPC, EIO},
    [FAULTS_SYNC] = {EIO},
    [FAULTS_RENAME] = {EACCES},
    [FAULTS_LINK] = {EIO},
    [FAULTS_STAT] = {EIO, EACCES},
    [FAULTS_READDIR] = {EIO},
    [FAULTS_MMAP] = {ENOMEM},
    [FAULTS_UNLINK] = {EACCES},
    [FAULTS_MKDIR] = {ENOSPC},
    [FAULTS_MALLOC] = {ENOMEM},
    [FAULTS_LIBRARY] = {ENOMEM},
};

static bool wanted(const struct trial *t)
{
    return (settings.command < 0 || t->command == (enum command)settings.command) &&
           (settings.call < 0 || t->fault.call == settings.call) &&
           (!settings.error || t->fault.error == settings.error) &&
           (!settings.at || t->fault.at == settings.at) &&
           (!settings.on || t->fault.on == (settings.on == 2));
}

static void add(enum command c, int call, int64_t n, const int *errors, int most, bool persists)
{
    enum { MOST_LIBRARY = 250 };
    static int64_t room;
    /* Libraries allocate ten thousands of times: some of these, at equal distances. */
    int64_t step = call == FAULTS_LIBRARY && !settings.at ? n / MOST_LIBRARY + 1 : 1;
    for (int64_t at = 1; at <= n; at += step)
        for (int i = 0; i < most && errors[i]; i++) {
            struct trial t = {c, {call, errors[i], at, persists}, 0};
            if (!wanted(&t)) continue;
            if (trials == room) {
                room = 2 * room + 1024;
                trial = realloc(trial, (size_t)room * sizeof *trial);
                if (!trial) die("out of memory");
            }
            trial[trials++] = t;
        }
}

/* Counts the calls of each command and lists the trials. */
static void list_trials(void)
{
    static const char *const names[] = FAULTS_NAMES;
    struct worker w = {.number = -1};
    struct outcome o;
    path_in(w.dir, "%s/w", settings.work);
    path_in(w.side, "%s/side", settings.work);
    for (enum command c = 0; c < COMMANDS; c++) {
        if (settings.command >= 0 && c != (enum command)settings.command) continue;
        copy_tree(scene_start(c), w.dir);
        run(&w, &(struct start){.words = scene_words(c), .counted = true}, &o);
        if (o.code) die("%s fails with the preloaded library: %s", command_names[c], o.err);
        printf("%-8s", command_names[c]);
        for (int i = 0; i < FAULTS_CALLS; i++) {
            if (o.count[i]) printf(" %s %lld", names[i], (long long)o.count[i]);
            add(c, i, (int64_t)o.count[i], once[i], 6, false);
            add(c, i, (int64_t)o.count[i], on[i], 4, true);
        }
        printf("\n");
    }
}

static int by_rank(const void *a, const void *b)
{
    const struct trial *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* In random order, but with as many of each command and call as there are. */
static void shuffle(void)
{
    int64_t seen[COMMANDS][FAULTS_CALLS] = {0};
    for (int64_t i = trials - 1; i > 0; i--) {
        int64_t j = (int64_t)(random_of(settings.seed, (uint64_t)i) % (uint64_t)(i + 1));
        struct trial t = trial[i];
        trial[i] = trial[j];
        trial[j] = t;
    }
    for (int64_t i = 0; i < trials; i++)
        trial[i].rank = seen[trial[i].command][trial[i].fault.call]++;
    qsort(trial, (size_t)trials, sizeof *trial, by_rank);
}

/* Commands that read must leave runs as they are, and print what they always print or say why. */
static void judge_reader(struct worker *w, enum command c, const struct outcome *o)
{
    static const char *const folders[] = {"run", "both", "data"};
    const char *expected = scene_expected(c);
    for (int i = 0; i < 3; i++) {
        char a[PATH_BYTES], b[PATH_BYTES];
        char *have = list_tree(path_in(a, "%s/%s", w->dir, folders[i]), true),
             *want = list_tree(path_in(b, "%s/%s", scene_start(c), folders[i]), true);
        char *difference = list_difference(want, have);
        /* compare writes its page into the folder of its runs */
        if (*difference && !(c == COMPARE && i == 1))
            report(w, FIND_CHANGED, "%s:%s", folders[i], difference);
        free(have);
        free(want);
        free(difference);
    }
    if (o->code == 0 && !o->signal && expected && strcmp(o->out, expected) != 0 &&
        !strstr(o->err, "warning"))
        report(w, FIND_SILENT, "exit code 0, no warning, but the output differs");
}

static void try(struct worker *w, int64_t index)
{
    const struct trial *t = &trial[index];
    static char repeat[256];
    static struct outcome o;
    snprintf(repeat, sizeof repeat, "calls --command=%s %s", command_names[t->command],
             fault_words(&t->fault));
    w->repeat = repeat;
    copy_tree(scene_start(t->command), w->dir);
    run(w, &(struct start){.words = scene_words(t->command), .fault = &t->fault}, &o);
    if (!o.hit) return; /* a call less than when they were counted */
    bool passes = !t->fault.on && (t->fault.error == EIO || t->fault.error == EINTR ||
                                   t->fault.error == FAULTS_SHORT);
    char where[512];
    snprintf(where, sizeof where, "%s  # %.200s", repeat, o.where);
    w->repeat = where;
    /* oneDNN 2 uses memory that it did not get; what is left is judged all the same */
    if (t->fault.call != FAULTS_LIBRARY || o.signal != SIGSEGV) judge_words(w, &o, t->command);
    if (t->command == TRAIN || t->command == RESUME)
        judge_run(w, &o, t->command == RESUME ? HALF : 0, passes);
    else if (t->command == DATA)
        judge_data(w, &o);
    else
        judge_reader(w, t->command, &o);
    judge_finish(w, t->command);
}

int mode_calls(void)
{
    list_trials();
    if (settings.limit && settings.limit < trials) {
        shuffle();
        trials = settings.limit;
    }
    if (!trials) die("there is no such trial");
    return run_trials("calls", trials, try);
}
