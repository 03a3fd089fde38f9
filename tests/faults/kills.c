/* SIGKILL at a random instant of train, resume and data. */
#include "driver.h"

#include <stdio.h>
#include <string.h>

static const enum command killed[] = {TRAIN, RESUME, DATA};
static double took[3];

static void try(struct worker *w, int64_t index)
{
    static char repeat[128];
    static struct outcome o;
    int which = (int)(index % 3);
    double share = (double)(random_of(settings.seed, (uint64_t)index) >> 11) * 0x1p-53;
    enum command c = killed[which];
    snprintf(repeat, sizeof repeat, "kills --at=%lld --seed=%llu  # %s", (long long)index + 1,
             (unsigned long long)settings.seed, command_names[c]);
    w->repeat = repeat;
    copy_tree(scene_start(c), w->dir);
    run(w, &(struct start){.words = scene_words(c), .kill_after = 1e-6 + 1.1 * share * took[which]},
        &o);
    if (o.code > 0) judge_words(w, &o, c);
    if (c == DATA)
        judge_data(w, &o);
    else
        judge_run(w, &o, c == RESUME ? HALF : 0, false);
    judge_finish(w, c);
}

int mode_kills(void)
{
    struct worker w = {.number = -1};
    struct outcome o;
    path_in(w.dir, "%s/w", settings.work);
    path_in(w.side, "%s/side", settings.work);
    for (int i = 0; i < 3; i++) {
        copy_tree(scene_start(killed[i]), w.dir);
        run(&w, &(struct start){.words = scene_words(killed[i])}, &o);
        took[i] = o.seconds * (settings.jobs > 1 ? 1.3 : 1);
    }
    return run_trials("kills", settings.limit ? settings.limit : 1000, try);
}
