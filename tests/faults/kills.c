/* SIGKILL at a random instant of train, resume and data. */
#include "driver.h"

#include <stdio.h>
#include <string.h>

static const enum command killed[] = {TRAIN, RESUME, DATA};
static double took[3];
enum { TRIES = 8 };

/* Returns how long the process ran. */
static double try_once(struct worker *w, enum command c, double seconds)
{
    static struct outcome o;
    copy_tree(scene_start(c), w->dir);
    run(w, &(struct start){.words = scene_words(c), .kill_after = 1e-6 + 1.1 * seconds}, &o);
    w->killed = o.killed;
    if (o.code > 0 || (o.signal && !o.killed)) judge_words(w, &o, c);
    if (c == DATA)
        judge_data(w, &o);
    else
        judge_run(w, &the_run, &o, c == RESUME ? HALF : 0, false);
    judge_finish(w, c);
    return o.seconds;
}

/* A share of the time that the command takes. */
static double instant(int64_t index, int64_t tries)
{
    return (double)(random_of(settings.seed, (uint64_t)(index * TRIES + tries)) >> 11) * 0x1p-53;
}

/* A process that ended before its instant is judged as well, and another one is started, with an
 * instant within the time that it took: the machine may be faster now than at the start. */
static void try(struct worker *w, int64_t index)
{
    static char repeat[128];
    int which = (int)(index % 3);
    enum command c = killed[which];
    double seconds = took[which];
    int64_t tries = 0;
    snprintf(repeat, sizeof repeat, "kills --at=%lld --seed=%llu  # %s", (long long)index + 1,
             (unsigned long long)settings.seed, command_names[c]);
    w->repeat = repeat;
    while (!w->killed && tries < TRIES) seconds = try_once(w, c, instant(index, tries++) * seconds);
    w->missed = !w->killed;
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
