#include "engine/crew.h"

#include "backend/communicator.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/threads.h"
#include "config/config.h"
#include "engine/device.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct crew_member {
    const struct crew_work *work;
    const void *job;
    struct communicator *communicator;
    pthread_t thread;
    bool started;
};

void crew_set_threads(const struct config *c)
{
    int64_t n = c->plan.threads;
    if (!n && c->ranks.count > 1) n = threads_asked();
    if (!n && c->ranks.count > 1)
        n = max_i64(threads_available() / communicator_local_ranks(c->ranks.count), 1);
    threads_set(n);
}

enum status crew_order(struct communicator *c, int64_t what, int64_t iter, int64_t first)
{
    struct crew_order o = {what, iter, first};
    return communicator_rank(c) > 0 ? ST_OK : communicator_tell(c, &o, sizeof o);
}

static enum status obey_all(struct communicator *c, const struct crew_work *w, void *state)
{
    struct crew_order o;
    for (;;) {
        TRY(communicator_tell(c, &o, sizeof o));
        if (o.what == CREW_END) return ST_OK;
        TRY(w->obey(state, &o));
    }
}

enum status crew_follow(struct communicator *c, const struct crew_work *w, const void *job)
{
    void *state = NULL;
    enum status st = w->open(&state, job, c);
    if (st == ST_OK) st = obey_all(c, w, state);
    if (st != ST_OK) communicator_fail(c, st);
    w->close(state);
    return st;
}

/* --- processes -------------------------------------------------------------------------------- */

void crew_set_rank(struct config *c, const struct communicator *comm)
{
    c->ranks.rank = communicator_rank(comm);
    if (!communicator_in_process(comm) && !strcmp(device_backend(c), "cuda"))
        c->plan.device = DEVICE_CUDA_0 + (unsigned)(device_number(c) + communicator_local_rank());
}

/* Machines may have different versions of Strobe, or MPI may have joined different commands. */
static enum status check_programs(struct communicator *c, const struct crew_program *p)
{
    struct program_words {
        char build[64], command[HASH_HEX];
    } own = {0}, *all = HEAP_NEW(struct program_words, communicator_ranks(c));
    snprintf(own.build, sizeof own.build, "%s", p->build);
    hash_bytes(p->command, (int64_t)strlen(p->command), own.command);
    enum status st = communicator_gather(c, &own, sizeof own, all);
    for (int r = 1; r < communicator_ranks(c) && st == ST_OK; r++) {
        if (strcmp(all[r].build, all[0].build) != 0)
            st = fail(ST_USAGE, "rank %d runs Strobe %s, but rank 0 %s; use one program everywhere",
                      r, all[r].build, all[0].build);
        else if (strcmp(all[r].command, all[0].command) != 0)
            st = fail(ST_USAGE, "rank %d was started by another command than rank 0", r);
    }
    free(all);
    return st;
}

/* Ends a process other than that of rank 0; returns if it has to report its failure. */
static enum status end_process(struct crew *crew, enum status st)
{
    bool reports = st != ST_OK && communicator_reports(crew->communicator);
    communicator_close(crew->communicator);
    crew->communicator = NULL;
    if (reports) return st;
    exit(st == ST_OK ? 0 : st == ST_USAGE ? 2 : 1);
}

enum status crew_join(struct crew *crew, const struct crew_program *p)
{
    *crew = (struct crew){0};
    if (!communicator_is_mpi()) return ST_OK;
    TRY(communicator_open_mpi(&crew->communicator));
    enum status st = check_programs(crew->communicator, p);
    if (communicator_rank(crew->communicator)) {
        log_mute_thread();
        signal(SIGINT, SIG_IGN); /* rank 0 ends the ranks */
        signal(SIGTERM, SIG_IGN);
        return st == ST_OK ? st : end_process(crew, st);
    }
    crew->listening = st == ST_OK;
    if (st != ST_OK) crew_close(crew);
    return st;
}

enum status crew_follow_process(struct crew *crew, const struct crew_work *w, const void *job)
{
    return end_process(crew, crew_follow(crew->communicator, w, job));
}

enum status crew_fail_process(struct crew *crew, enum status st)
{
    communicator_fail(crew->communicator, st);
    return end_process(crew, st);
}

enum status crew_count(const struct crew *crew, struct config *c, bool asked)
{
    int ranks = communicator_ranks(crew->communicator);
    if (!crew->communicator || c->ranks.count == ranks) return ST_OK;
    if (asked)
        return fail(ST_USAGE, "ranks = %lld, but MPI started %d processes; leave the key out",
                    (long long)c->ranks.count, ranks);
    c->ranks.count = ranks;
    return config_check(c);
}

/* --- threads ---------------------------------------------------------------------------------- */

static void *run_member(void *user)
{
    struct crew_member *m = user;
    log_mute_thread();
    (void)!crew_follow(m->communicator, m->work, m->job);
    communicator_close(m->communicator);
    return NULL;
}

enum status crew_open(struct crew *crew, int64_t ranks, int64_t timeout_s,
                      const struct crew_work *w, const void *job)
{
    struct communicator **all = HEAP_NEW(struct communicator *, ranks);
    communicator_open_threads(all, (int)ranks, timeout_s);
    *crew =
        (struct crew){.communicator = all[0], .members = (int)ranks - 1, .timeout_s = timeout_s};
    crew->member = HEAP_NEW(struct crew_member, crew->members);
    for (int i = 0; i < crew->members; i++)
        crew->member[i] = (struct crew_member){.work = w, .job = job, .communicator = all[i + 1]};
    free(all);
    for (int i = 0; i < crew->members; i++) {
        struct crew_member *m = &crew->member[i];
        m->started = threads_start(&m->thread, run_member, m);
        if (!m->started)
            return fail(ST_MEMORY, "the system cannot start a thread for rank %d", i + 1);
    }
    crew->listening = true;
    return ST_OK;
}

static bool join(pthread_t thread, const struct timespec *end)
{
    return (end ? pthread_timedjoin_np(thread, NULL, end) : pthread_join(thread, NULL)) == 0;
}

/* Waits for the threads, after a failure for at most timeout_s. False if a thread hangs: its memory
 * is then not freed, since the process ends soon. */
static bool join_all(const struct crew *crew, bool failed)
{
    struct timespec end;
    bool all = true;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += crew->timeout_s;
    for (int i = 0; i < crew->members; i++) {
        struct crew_member *m = &crew->member[i];
        if (m->started)
            all &= join(m->thread, failed ? &end : NULL);
        else
            communicator_close(m->communicator);
    }
    return all;
}

void crew_end(struct crew *crew)
{
    struct failure kept;
    if (!crew->communicator || crew->ended) return;
    crew->ended = true;
    fail_keep(&kept);
    bool failed = !crew->listening || crew_order(crew->communicator, CREW_END, 0, 0) != ST_OK;
    if (failed) communicator_fail(crew->communicator, ST_DEVICE);
    if (join_all(crew, failed)) free(crew->member);
    crew->member = NULL;
    fail_restore(&kept);
}

void crew_close(struct crew *crew)
{
    struct failure kept;
    fail_keep(&kept);
    crew_end(crew);
    communicator_close(crew->communicator);
    *crew = (struct crew){0};
    fail_restore(&kept);
}
