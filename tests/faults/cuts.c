/* Power cuts: the changes that train, resume and data make to their folder are recorded once, with
 * all bytes and syncs. A trial builds the folder as a disk may hold it after the first n of them,
 * and goes on from there. */
#include "disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CUT = 3 };
static const enum command cut[CUT] = {TRAIN, RESUME, DATA};
static struct disk disk[CUT];

static void record(int which)
{
    struct worker w = {.number = -1};
    static struct outcome o;
    char path[PATH_BYTES];
    path_in(w.dir, "%s/w", settings.work);
    path_in(w.side, "%s/side", settings.work);
    copy_tree(scene_start(cut[which]), w.dir);
    disk_read(&disk[which], w.dir);
    path_in(path, "%s/record", w.side);
    remove(path);
    run(&w, &(struct start){.words = scene_words(cut[which]), .record = path}, &o);
    if (o.code) die("%s fails while it is recorded: %s", command_names[cut[which]], o.err);
    disk_add_record(&disk[which], path);
    int syncs = 0;
    for (int i = 0; i < disk[which].changes; i++)
        syncs += disk[which].change[i].r.change == CHANGE_SYNC;
    printf("%-8s %d changes, %d of them syncs\n", command_names[cut[which]], disk[which].changes,
           syncs);
}

/* The newest checkpoint that had its name before a line was added to the log: the program had gone
 * on, so the checkpoint was reported as saved. */
static int saved_before(const struct disk *d, int prefix)
{
    int named = 0, ret = 0, log = -1;
    for (int i = 0; i < prefix; i++) {
        const struct disk_change *c = &d->change[i];
        bool renamed = c->r.change == CHANGE_RENAME || c->r.change == CHANGE_EXCHANGE;
        const char *name = renamed ? c->r.name2 : c->r.name;
        if (renamed && strspn(name, "0123456789") == 6 && !name[6] && atoi(name) > named)
            named = atoi(name);
        if (!strcmp(name, "log.jsonl") && c->file >= 0) log = c->file;
        if (c->r.change == CHANGE_WRITE && c->file == log && log >= 0) ret = named;
    }
    return ret;
}

static int64_t trials_of(int which)
{
    return (int64_t)(disk[which].changes + 1) * SURVIVALS;
}

static int64_t *order;

static void try(struct worker *w, int64_t index)
{
    static const char *const kept[] = {"none", "all", "a journal", "any"};
    static char repeat[160];
    static struct outcome none;
    int64_t at = order[index], left = at;
    int which = 0;
    while (left >= trials_of(which)) left -= trials_of(which++);
    int prefix = (int)(left / SURVIVALS);
    enum survival s = (enum survival)(left % SURVIVALS);
    snprintf(repeat, sizeof repeat, "cuts --at=%lld --seed=%llu  # %s, after change %d, kept: %s",
             (long long)at + 1, (unsigned long long)settings.seed, command_names[cut[which]],
             prefix, kept[s]);
    w->repeat = repeat;
    disk_write(&disk[which], prefix, s, random_of(settings.seed, (uint64_t)at), w->dir);
    none.code = -1;
    int floor = cut[which] == RESUME ? HALF : 0, saved = saved_before(&disk[which], prefix);
    if (cut[which] == DATA)
        judge_data(w, NULL);
    else
        judge_run(w, &the_run, &none, saved > floor ? saved : floor, false);
    judge_finish(w, cut[which]);
}

int mode_cuts(void)
{
    int64_t n = 0;
    for (int i = 0; i < CUT; i++) {
        record(i);
        n += trials_of(i);
    }
    order = malloc((size_t)n * sizeof *order);
    if (!order) die("out of memory");
    for (int64_t i = 0; i < n; i++) order[i] = i;
    bool some = settings.limit && settings.limit < n && !settings.at;
    for (int64_t i = n - 1; some && i > 0; i--) {
        int64_t j = (int64_t)(random_of(settings.seed, (uint64_t)i) % (uint64_t)(i + 1)),
                kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    return run_trials("cuts", some ? settings.limit : n, try);
}
