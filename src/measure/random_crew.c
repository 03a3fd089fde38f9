#include "measure/random_crew.h"

#include "backend/communicator.h"
#include "base/heap.h"
#include "measure/random_step.h"

#include <stdlib.h>

struct rank {
    const struct random_crew_watch *watch;
    bool watched;
    struct config config; /* a copy of the job's, with this rank's number */
    struct engine engine;
    struct random_step step;
    struct arena arena;
};

static enum status open_rank(void **ret, const void *user, struct communicator *c)
{
    const struct random_crew_job *job = user;
    struct rank *r = HEAP_NEW(struct rank, 1);
    *ret = r;
    *r = (struct rank){.watch = &job->watch};
    r->watched = communicator_in_process(c) && job->watch.begin;
    r->config = *job->config;
    crew_set_rank(&r->config, c);
    crew_set_threads(&r->config);
    TRY(random_step_open(&r->engine, &r->config, job->vocab, c, &r->arena));
    return random_step_init(&r->step, &r->engine, &r->arena);
}

static enum status run_step(void *state, const struct crew_order *o)
{
    struct rank *r = state;
    const struct random_crew_watch *w = r->watch;
    bool marked = o->first && r->watched, starts = o->what == STEP_ORDER_START;
    if (!marked) return random_step_obey(&r->step, o, NULL);
    struct plan_hooks hooks = {0};
    if (starts) hooks = w->begin(w->user, &r->engine, o->first);
    enum status st = random_step_obey(&r->step, o, &hooks);
    if (!starts) w->end(w->user, &r->engine);
    return st;
}

static void close_rank(void *state)
{
    struct rank *r = state;
    random_step_close(&r->step);
    engine_close(&r->engine);
    arena_release(&r->arena);
    free(r);
}

static const struct crew_work work = {open_rank, run_step, close_rank};

enum status random_crew_follow(struct crew *crew, const struct random_crew_job *job)
{
    communicator_set_timeout(crew->communicator, job->config->ranks.timeout);
    return crew_follow_process(crew, &work, job);
}

enum status random_crew_open(struct crew *crew, const struct random_crew_job *job)
{
    const struct config_ranks *r = &job->config->ranks;
    *crew = (struct crew){0};
    if (r->count == 1) return ST_OK;
    if (r->by == RANKS_MPI)
        return fail(ST_UNSUPPORTED,
                    "only `strobe profile` measures ranks that are processes: leave out "
                    "--ranks_by=mpi");
    return crew_open(crew, r->count, r->timeout, &work, job);
}
