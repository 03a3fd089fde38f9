#include "train/ranks.h"

#include "backend/communicator.h"
#include "base/heap.h"
#include "base/isa.h"
#include "base/log.h"
#include "base/str.h"
#include "base/threads.h"
#include "engine/device.h"
#include "engine/shards.h"
#include "train/evaluator.h"
#include "train/learner.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- orders ----------------------------------------------------------------------------------- */

struct message {
    int64_t order, iter, first;
};

enum status ranks_order_at(struct communicator *c, enum order order, int64_t iter, int64_t first)
{
    struct message m = {order, iter, first};
    return communicator_rank(c) > 0 ? ST_OK : communicator_tell(c, &m, sizeof m);
}

enum status ranks_order(struct communicator *c, enum order order, int64_t iter)
{
    return ranks_order_at(c, order, iter, 0);
}

/* --- weights ---------------------------------------------------------------------------------- */

/* The host copy of a state at rank 0, whose rows point into it; else NULL. */
static float *state_range(const struct engine *e, const struct weights_tensor *tensors, int state)
{
    float *first = tensors[0].state[state].data;
    return first ? first - e->program.model.parameter[0].offset : NULL;
}

/* Moves the state of all shards, bucket by bucket, to the host copy at rank 0, or from there. */
static enum status move_shards(struct communicator *c, const struct engine *e,
                               const struct weights_tensor *tensors, bool fetch)
{
    const struct config *config = e->program.config;
    int64_t elements = e->program.model.elements;
    int64_t longest = shard_bucket(config, elements, 0).elements;
    float *buffer = HEAP_NEW(float, longest);
    enum status st = ST_OK;
    for (int s = 0; s < optimizer_of(config)->states; s++) {
        float *whole = state_range(e, tensors, s);
        for (int64_t k = 0; k < shard_buckets(config, elements); k++) {
            struct shard_part b = shard_bucket(config, elements, k);
            size_t bytes = (size_t)b.elements * sizeof *buffer;
            if (fetch) {
                TRY_OUT(st, weights_fetch_shard(e, s, k, buffer));
                TRY_OUT(st, communicator_start(c, COLLECTIVE_ALL_GATHER, buffer, b.elements));
                TRY_OUT(st, communicator_wait(c, buffer));
                if (whole) memcpy(whole + b.first, buffer, bytes);
            } else {
                if (whole) memcpy(buffer, whole + b.first, bytes);
                TRY_OUT(st, communicator_broadcast(c, buffer, b.elements));
                TRY_OUT(st, weights_bring_shard(e, s, k, buffer));
            }
        }
    }
out:
    free(buffer);
    return st;
}

/* What all ranks do after ORDER_WEIGHTS. */
static enum status bring(struct communicator *c, struct engine *e,
                         const struct weights_tensor *tensors)
{
    bool shards = shards_state(e->program.config);
    for (int i = 0; i < e->program.model.parameters; i++) {
        const struct weights_tensor *t = &tensors[i];
        int64_t n = 1;
        for (int d = 0; d < t->rank; d++) n *= t->dim[d];
        TRY(communicator_broadcast(c, t->weight, n));
        for (int k = 0; k < OPTIMIZER_STATES && !shards; k++)
            if (t->state[k].data) TRY(communicator_broadcast(c, t->state[k].data, n));
    }
    if (shards) TRY(move_shards(c, e, tensors, false));
    return weights_bring(e, tensors);
}

enum status ranks_bring_weights(const struct ranks *r, struct engine *e,
                                const struct weights_tensor *tensors)
{
    if (!r->communicator) return weights_bring(e, tensors);
    TRY(ranks_order(r->communicator, ORDER_WEIGHTS, 0));
    return bring(r->communicator, e, tensors);
}

enum status ranks_fetch_weights(const struct ranks *r, const struct engine *e,
                                const struct weights_tensor *tensors)
{
    if (r->communicator && shards_state(e->program.config)) {
        TRY(ranks_order(r->communicator, ORDER_STATE, 0));
        TRY(move_shards(r->communicator, e, tensors, true));
    }
    return weights_fetch(e, tensors);
}

/* --- what must be the same everywhere --------------------------------------------------------- */

struct sameness {
    char train[HASH_HEX], validation[HASH_HEX];
    int64_t isa;
};

static enum status agree(struct communicator *c, const struct learner *l)
{
    int ranks = communicator_ranks(c);
    struct sameness own = {0}, *all = HEAP_NEW(struct sameness, ranks);
    memcpy(own.train, l->dataset.sha256[SPLIT_TRAIN], sizeof own.train);
    memcpy(own.validation, l->dataset.sha256[SPLIT_VAL], sizeof own.validation);
    own.isa = isa_used();
    enum status st = communicator_gather(c, &own, sizeof own, all);
    for (int r = 1; r < ranks && st == ST_OK; r++) {
        bool other_data = strcmp(all[r].train, all[0].train) != 0 ||
                          strcmp(all[r].validation, all[0].validation) != 0;
        if (other_data)
            st = fail(ST_USAGE,
                      "rank %d has another data set %s than rank 0: their digests differ; copy one "
                      "to all machines",
                      r, l->dataset.name);
        else if (all[r].isa != all[0].isa) /* the narrower sets come later */
            st = fail(ST_USAGE, "rank %d computes with %s, but rank 0 with %s; set --isa=%s", r,
                      isa_words[all[r].isa], isa_words[all[0].isa],
                      isa_words[max_i64(all[r].isa, all[0].isa)]);
    }
    free(all);
    return st;
}

/* --- the other ranks -------------------------------------------------------------------------- */

struct follower {
    struct config *config; /* with the number of the rank; of a process: NULL until it was sent */
    struct communicator *communicator;
    pthread_t thread;
    bool started;
    struct learner learner;
    struct evaluator evaluator;
    struct weights_tensor *tensors;
    float *losses;
    struct arena arena;
};

static enum status take_config(struct follower *f, int64_t bytes);

static enum status obey(struct follower *f, const struct message *m)
{
    struct learner_step step;
    switch ((enum order)m->order) {
    case ORDER_START:
        return learner_start(&f->learner, m->iter);
    case ORDER_FINISH: {
        /* rank 0 has the same numbers, and decides what follows from them */
        enum status st = learner_finish(&f->learner, m->iter, &step);
        return st == ST_NUMERIC ? ST_OK : st;
    }
    case ORDER_EVALUATE:
        return evaluator_join(&f->evaluator, m->iter, m->first, f->losses);
    case ORDER_WEIGHTS:
        return bring(f->communicator, &f->learner.engine, f->tensors);
    case ORDER_STATE:
        return move_shards(f->communicator, &f->learner.engine, f->tensors, true);
    case ORDER_BEGIN:
        return take_config(f, m->first);
    case ORDER_END:
        break;
    }
    return ST_OK;
}

static enum status open_follower(struct follower *f)
{
    struct arena *a = &f->arena;
    struct learner *l = &f->learner;
    ranks_set_threads(f->config);
    TRY(learner_open(l, f->config, 1u << GRAPH_EVAL, f->communicator, a));
    TRY(evaluator_init(&f->evaluator, &l->engine, &l->dataset, &l->hooks, a));
    f->tensors = weights_tensors(&l->engine, a);
    f->losses = ARENA_NEW(a, float, EVALUATOR_ROUND *communicator_ranks(f->communicator));
    return agree(f->communicator, l);
}

static enum status follow(struct follower *f)
{
    struct message m = {0};
    if (f->config) TRY(open_follower(f));
    do {
        TRY(communicator_tell(f->communicator, &m, sizeof m));
        TRY(obey(f, &m));
    } while (m.order != ORDER_END);
    return ST_OK;
}

static enum status run_follower(struct follower *f)
{
    enum status st = follow(f);
    if (st != ST_OK) communicator_fail(f->communicator);
    evaluator_close(&f->evaluator);
    learner_close(&f->learner);
    arena_release(&f->arena);
    return st;
}

static void *run_thread(void *user)
{
    struct follower *f = user;
    log_mute_thread();
    (void)!run_follower(f);
    communicator_close(f->communicator);
    return NULL;
}

/* --- processes -------------------------------------------------------------------------------- */

/* Takes the configuration of rank 0, whose text has `bytes` bytes. */
static enum status take_config(struct follower *f, int64_t bytes)
{
    struct config *c = ARENA_NEW(&f->arena, struct config, 1);
    char *text = arena_alloc(&f->arena, bytes + 1);
    TRY(communicator_tell(f->communicator, text, bytes));
    text[bytes] = '\0';
    config_init(c);
    TRY(config_read_memory(c, "the configuration of rank 0", text, &f->arena));
    TRY(isa_limit(c->plan.isa));
    communicator_set_timeout(f->communicator, c->ranks.timeout);
    c->ranks.rank = communicator_rank(f->communicator);
    /* each process of a machine has a GPU of its own, from that of rank 0 on */
    if (!strcmp(device_backend(c), "cuda"))
        c->plan.device = DEVICE_CUDA_0 + (unsigned)(device_number(c) + communicator_local_rank());
    f->config = c;
    return open_follower(f);
}

static enum status send_config(struct ranks *r, const struct config *c)
{
    struct str s = {0};
    config_print(c, &s);
    enum status st = ranks_order_at(r->communicator, ORDER_BEGIN, 0, s.len);
    if (st == ST_OK) st = communicator_tell(r->communicator, (char *)str_text(&s), s.len);
    str_release(&s);
    communicator_set_timeout(r->communicator, c->ranks.timeout);
    return st;
}

/* Two machines may have two versions, or two commands were joined by mistake. */
static enum status check_programs(struct communicator *c, const struct ranks_program *p)
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

enum status ranks_join(struct ranks *r, const struct ranks_program *p)
{
    *r = (struct ranks){0};
    if (!communicator_is_mpi()) return ST_OK;
    TRY(communicator_open_mpi(&r->communicator));
    struct communicator *c = r->communicator;
    bool leads = communicator_rank(c) == 0;
    enum status st = check_programs(c, p);
    if (leads) {
        r->listening = st == ST_OK;
        if (st != ST_OK) ranks_close(r);
        return st;
    }
    struct follower f = {.communicator = c};
    log_mute_thread();
    signal(SIGINT, SIG_IGN); /* rank 0 ends the training */
    signal(SIGTERM, SIG_IGN);
    if (st == ST_OK) st = run_follower(&f);
    bool reports = st != ST_OK && communicator_reports(c);
    communicator_close(c);
    r->communicator = NULL;
    if (reports) return st;
    exit(st == ST_OK ? 0 : 1);
}

enum status ranks_count(const struct ranks *r, struct config *c)
{
    int ranks = communicator_ranks(r->communicator);
    if (!r->communicator || c->ranks.count == ranks) return ST_OK;
    if (c->ranks.count > 1)
        return fail(ST_USAGE, "ranks = %lld, but MPI started %d processes; leave the key out",
                    (long long)c->ranks.count, ranks);
    c->ranks.count = ranks;
    return config_check(c);
}

/* --- rank 0 ----------------------------------------------------------------------------------- */

void ranks_set_threads(const struct config *c)
{
    int64_t each = threads_available() / communicator_local_ranks(c->ranks.count);
    threads_set(c->plan.threads || c->ranks.count == 1 ? c->plan.threads : max_i64(each, 1));
}

static enum status start_threads(struct ranks *r, const struct config *c)
{
    int ranks = (int)c->ranks.count;
    struct communicator **all = HEAP_NEW(struct communicator *, ranks);
    communicator_open_threads(all, ranks, c->ranks.timeout);
    r->communicator = all[0];
    r->followers = ranks - 1;
    r->follower = HEAP_NEW(struct follower, r->followers);
    for (int i = 0; i < r->followers; i++) {
        struct follower *f = &r->follower[i];
        f->config = ARENA_NEW(&f->arena, struct config, 1);
        *f->config = *c;
        f->config->ranks.rank = i + 1;
        f->communicator = all[i + 1];
    }
    free(all);
    for (int i = 0; i < r->followers; i++) {
        struct follower *f = &r->follower[i];
        f->started = threads_start(&f->thread, run_thread, f);
        if (!f->started) return fail(ST_MEMORY, "the system has no thread for rank %d", i + 1);
    }
    return ST_OK;
}

enum status ranks_open(struct ranks *r, const struct config *c)
{
    r->listening = false;
    if (r->communicator) return send_config(r, c);
    return c->ranks.count > 1 ? start_threads(r, c) : ST_OK;
}

enum status ranks_agree(struct ranks *r, const struct learner *l)
{
    if (!r->communicator) return ST_OK;
    TRY(agree(r->communicator, l));
    r->listening = true;
    return ST_OK;
}

void ranks_end(struct ranks *r)
{
    struct failure kept;
    if (!r->communicator || r->ended) return;
    r->ended = true;
    fail_keep(&kept);
    if (!r->listening || ranks_order(r->communicator, ORDER_END, 0) != ST_OK)
        communicator_fail(r->communicator);
    for (int i = 0; i < r->followers; i++) {
        struct follower *f = &r->follower[i];
        if (f->started) pthread_join(f->thread, NULL);
        if (!f->started) {
            communicator_close(f->communicator);
            arena_release(&f->arena);
        }
    }
    free(r->follower);
    r->follower = NULL;
    fail_restore(&kept);
}

void ranks_close(struct ranks *r)
{
    struct failure kept;
    fail_keep(&kept);
    ranks_end(r);
    communicator_close(r->communicator);
    *r = (struct ranks){0};
    fail_restore(&kept);
}
