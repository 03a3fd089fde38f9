/* The n-th call of a kind fails, once or from then on, for every n (of allocations: some). */
#include "driver.h"

#include <errno.h>
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
}; /* a disk that is full or dead stays so */
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
    [FAULTS_FULL] = {ENOSPC},
    [FAULTS_DEAD] = {EIO},
};

static bool wanted(const struct trial *t)
{
    return (settings.command < 0 || t->command == (enum command)settings.command) &&
           (settings.call < 0 || t->fault.call == settings.call) &&
           (!settings.error || t->fault.error == settings.error) &&
           (!settings.at || t->fault.at == settings.at) &&
           (!settings.on || t->fault.on == (settings.on == 2));
}

static void add_one(const struct trial *t)
{
    static int64_t capacity;
    if (!wanted(t)) return;
    if (trials == capacity) {
        capacity = 2 * capacity + 1024;
        trial = realloc(trial, (size_t)capacity * sizeof *trial);
        if (!trial) die("out of memory");
    }
    trial[trials++] = *t;
}

static void add_trial(enum command c, int call, int64_t n, const int *errors, int most,
                      bool persists)
{
    for (int64_t at = 1; at <= n; at++)
        for (int i = 0; i < most && errors[i]; i++)
            add_one(&(struct trial){c, {call, errors[i], at, persists}, 0});
}

/* ---- allocations: those of one stack fail alike, so some of each are tried */

struct place {
    uint64_t stack;
    int64_t at;
};

static int by_stack(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->stack != y->stack) return x->stack > y->stack ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

static uint64_t *known; /* stacks of the commands so far, sorted */
static int64_t knowns;

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Of the `n` calls of one stack: the first, the last and the one in the middle, once and from then
 * on; of a stack that an earlier command had, too (the start, the configuration), only the first,
 * once. */
static void add_stack(enum command c, const struct place *p, int64_t n)
{
    const int64_t which[] = {0, n - 1, n / 2};
    bool is_known = knowns && bsearch(&p->stack, known, (size_t)knowns, sizeof *known, by_value);
    for (int64_t i = 0; i < (is_known ? 1 : 3) && i < n; i++)
        for (int persists = 0; persists < (is_known ? 1 : 2); persists++)
            add_one(&(struct trial){c, {FAULTS_MALLOC, ENOMEM, p[which[i]].at, persists}, 0});
}

static void remember(const struct place *p, int64_t n)
{
    known = realloc(known, (size_t)(knowns + n + 1) * sizeof *known);
    if (!known) die("out of memory");
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || p[i].stack != p[i - 1].stack) known[knowns++] = p[i].stack;
    qsort(known, (size_t)knowns, sizeof *known, by_value);
}

/* Returns the number of stacks. */
static int64_t add_memory(enum command c, const char *path, int64_t n)
{
    size_t bytes;
    uint64_t *stack = (uint64_t *)read_whole(path, &bytes);
    struct place *p = malloc((size_t)(n + 1) * sizeof *p);
    if (!stack || !p || (size_t)n > bytes / sizeof *stack) die("%s: no stacks", path);
    for (int64_t i = 0; i < n; i++) p[i] = (struct place){stack[i], i + 1};
    qsort(p, (size_t)n, sizeof *p, by_stack);
    int64_t stacks = 0;
    for (int64_t i = 0, end; i < n; i = end, stacks++) {
        for (end = i; end < n && p[end].stack == p[i].stack;) end++;
        add_stack(c, p + i, end - i);
    }
    remember(p, n);
    free(stack);
    free(p);
    return stacks;
}

static void add_calls(enum command c, const struct outcome *o, const char *stacks)
{
    static const char *const names[] = FAULTS_NAMES;
    printf("%-8s", command_names[c]);
    for (int i = 0; i < FAULTS_CALLS; i++) {
        int64_t n = (int64_t)o->count[i];
        if (n) printf(" %s %lld", names[i], (long long)n);
        if (i == FAULTS_MALLOC && !settings.every && !settings.at) {
            printf(" of %lld stacks", (long long)add_memory(c, stacks, n));
            continue;
        }
        add_trial(c, i, n, once[i], 6, false);
        add_trial(c, i, n, on[i], 4, true);
    }
    printf("\n");
}

/* Counts the calls of each command and lists the trials. */
static void list_trials(void)
{
    struct worker w = {.number = -1};
    static struct outcome o;
    char stacks[PATH_BYTES];
    path_in(w.dir, "%s/w", settings.work);
    path_in(w.side, "%s/side", settings.work);
    path_in(stacks, "%s/stacks", settings.work);
    for (enum command c = 0; c < COMMANDS; c++) {
        if (settings.command >= 0 && c != (enum command)settings.command) continue;
        copy_tree(scene_start(c), w.dir);
        remove(stacks);
        run(&w, &(struct start){.words = scene_words(c), .stacks = stacks}, &o);
        if (o.code) die("%s fails with the preloaded library: %s", command_names[c], o.err);
        add_calls(c, &o, stacks);
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

/* compare writes its page into the folder of its runs, and trains the second of them. The rest of
 * the difference stays: words "+NAME" and "-NAME", each with a digest. */
static void leave_out_own(char *difference)
{
    char kept[4096] = "";
    bool is_own = false;
    for (char *word = strtok(difference, " "); word; word = strtok(NULL, " ")) {
        if (*word == '+' || *word == '-')
            is_own = !strcmp(word + 1, "report.html") || !strncmp(word + 1, "seed=2/", 7);
        size_t n = strlen(kept);
        if (!is_own) snprintf(kept + n, sizeof kept - n, " %s", word);
    }
    strcpy(difference, kept); /* never longer than before */
}

/* Commands that read must leave runs as they are, and print what they always print or say why. */
static void judge_reader(struct worker *w, enum command c, const struct outcome *o)
{
    static const char *const folders[] = {"run", "both", "data"};
    for (int i = 0; i < 3; i++) {
        char a[PATH_BYTES], b[PATH_BYTES];
        char *have = list_tree(path_in(a, "%s/%s", w->dir, folders[i]), true),
             *want = list_tree(path_in(b, "%s/%s", scene_start(c), folders[i]), true);
        char *difference = list_difference(want, have);
        if (c == COMPARE && i == 1) leave_out_own(difference);
        if (*difference) report(w, FIND_CHANGED, "%s:%s", folders[i], difference);
        free(have);
        free(want);
        free(difference);
    }
    judge_output(w, c, o);
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
    if (!o.hit) { /* a call less than when they were counted */
        w->missed = true;
        return;
    }
    bool passes = !t->fault.on && (t->fault.error == EIO || t->fault.error == EINTR ||
                                   t->fault.error == FAULTS_SHORT);
    char where[512];
    snprintf(where, sizeof where, "%s  # %.200s", repeat, o.where);
    w->repeat = where;
    judge_words(w, &o, t->command);
    if (t->command == TRAIN || t->command == RESUME)
        judge_run(w, &the_run, &o, t->command == RESUME ? HALF : 0, passes);
    else if (t->command == DATA)
        judge_data(w, &o);
    else
        judge_reader(w, t->command, &o);
    if (t->command == COMPARE) judge_run(w, &compared_run, &o, HALF, passes);
    judge_finish(w, t->command);
}

int mode_calls(void)
{
    list_trials();
    printf("%lld trials\n", (long long)trials);
    if (settings.limit && settings.limit < trials) {
        shuffle();
        trials = settings.limit;
    }
    if (!trials) die("there is no such trial");
    return run_trials("calls", trials, try);
}
