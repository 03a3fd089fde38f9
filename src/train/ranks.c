#include "train/ranks.h"

#include "backend/communicator.h"
#include "base/heap.h"
#include "base/isa.h"
#include "base/str.h"
#include "engine/shards.h"
#include "train/evaluator.h"
#include "train/learner.h"
#include "train/sampler.h"

#include <stdlib.h>
#include <string.h>

/* --- weights ---------------------------------------------------------------------------------- */

/* Copies all shards of a storage range, bucket by bucket: to the host copy of rank 0 with `fetch`,
 * else from it. `first` is the first parameter of the host copy; NULL on the other ranks. */
static enum status move_range(struct communicator *c, const struct engine *e, enum storage s,
                              float *first, bool fetch)
{
    const struct config *config = e->program.config;
    const struct model *m = &e->program.model;
    float *all = first ? first - m->parameter[0].offset : NULL;
    float *buffer = HEAP_NEW(float, shard_longest(config, m));
    enum status st = ST_OK;
    for (int64_t k = 0; k < shard_buckets(config, m); k++) {
        struct shard_part b = shard_bucket(config, m, k);
        size_t bytes = (size_t)b.elements * sizeof *buffer;
        if (fetch) {
            TRY_OUT(st, weights_fetch_shard(e, s, k, buffer));
            TRY_OUT(st, communicator_start(c, COLLECTIVE_ALL_GATHER, buffer, b.elements));
            TRY_OUT(st, communicator_wait(c, buffer));
            if (all) memcpy(all + b.first, buffer, bytes);
        } else {
            if (all) memcpy(buffer, all + b.first, bytes);
            TRY_OUT(st, communicator_broadcast(c, buffer, b.elements));
            TRY_OUT(st, weights_bring_shard(e, s, k, buffer));
        }
    }
out:
    free(buffer);
    return st;
}

static enum status move_shards(struct communicator *c, const struct engine *e,
                               const struct weights_tensor *tensors, bool fetch)
{
    const struct optimizer *o = optimizer_of(e->program.config);
    if (weights_in_shards(e, STORAGE_WEIGHTS))
        TRY(move_range(c, e, STORAGE_WEIGHTS, tensors[0].weight, fetch));
    for (int k = 0; k < o->states; k++)
        TRY(move_range(c, e, o->state[k].storage, tensors[0].state[k].data, fetch));
    return ST_OK;
}

/* All ranks call this after ORDER_WEIGHTS. */
static enum status bring(struct communicator *c, struct engine *e,
                         const struct weights_tensor *tensors)
{
    bool shards = shards_state(e->program.config);
    for (int i = 0; i < e->program.model.parameters; i++) {
        const struct weights_tensor *t = &tensors[i];
        int64_t n = 1;
        for (int d = 0; d < t->rank; d++) n *= t->dim[d];
        if (!weights_in_shards(e, STORAGE_WEIGHTS)) TRY(communicator_broadcast(c, t->weight, n));
        for (int k = 0; k < OPTIMIZER_STATES && !shards; k++)
            if (t->state[k].data) TRY(communicator_broadcast(c, t->state[k].data, n));
    }
    if (shards) TRY(move_shards(c, e, tensors, false));
    return weights_bring(e, tensors);
}

enum status ranks_bring_weights(const struct crew *r, struct engine *e,
                                const struct weights_tensor *tensors)
{
    if (!r->communicator) return weights_bring(e, tensors);
    TRY(crew_order(r->communicator, ORDER_WEIGHTS, 0, 0));
    return bring(r->communicator, e, tensors);
}

enum status ranks_fetch_weights(const struct crew *r, const struct engine *e,
                                const struct weights_tensor *tensors)
{
    if (r->communicator && shards_state(e->program.config)) {
        TRY(crew_order(r->communicator, ORDER_STATE, 0, 0));
        TRY(move_shards(r->communicator, e, tensors, true));
    }
    return weights_fetch(e, tensors);
}

enum status ranks_sample(const struct crew *r, const struct learner *l)
{
    if (!shards_weights(l->config)) return ST_OK;
    return crew_order(r->communicator, ORDER_SAMPLE, 0, 0);
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
    struct config *config; /* with this rank's number; NULL until an MPI process receives it */
    struct communicator *communicator;
    struct learner learner;
    struct evaluator evaluator;
    struct weights_tensor *tensors;
    float *losses;
    struct arena arena;
};

static enum status take_config(struct follower *f, int64_t bytes);

static enum status sample(struct follower *f)
{
    struct learner *l = &f->learner;
    struct str text = {0};
    enum status st = sampler_write_text(&l->engine, &l->dataset.vocabulary, &text, &f->arena);
    str_release(&text);
    return st;
}

static enum status obey(void *state, const struct crew_order *m)
{
    struct follower *f = state;
    struct learner_step step;
    switch ((enum order)m->what) {
    case ORDER_START:
        return learner_start(&f->learner, m->iter);
    case ORDER_FINISH: {
        /* rank 0 has the same results and decides what to do */
        enum status st = learner_finish(&f->learner, m->iter, &step);
        return st == ST_NUMERIC ? ST_OK : st;
    }
    case ORDER_EVALUATE:
        return evaluator_join(&f->evaluator, m->iter, m->first, f->losses);
    case ORDER_WEIGHTS:
        return bring(f->communicator, &f->learner.engine, f->tensors);
    case ORDER_STATE:
        return move_shards(f->communicator, &f->learner.engine, f->tensors, true);
    case ORDER_SAMPLE:
        return sample(f);
    case ORDER_BEGIN:
        return take_config(f, m->first);
    }
    return ST_OK;
}

static enum status open_follower(struct follower *f)
{
    struct arena *a = &f->arena;
    struct learner *l = &f->learner;
    crew_set_threads(f->config);
    unsigned more = 1u << GRAPH_EVAL;
    if (shards_weights(f->config)) more |= 1u << GRAPH_LOGITS | 1u << GRAPH_DECODE;
    TRY(learner_open(l, f->config, more, f->communicator, a));
    TRY(evaluator_init(&f->evaluator, &l->engine, &l->dataset, &l->hooks, a));
    f->tensors = weights_tensors(&l->engine, a);
    f->losses = ARENA_NEW(a, float, EVALUATOR_ROUND *communicator_ranks(f->communicator));
    return agree(f->communicator, l);
}

static enum status open_rank(void **ret, const void *config, struct communicator *c)
{
    struct follower *f = HEAP_NEW(struct follower, 1);
    *ret = f;
    *f = (struct follower){.communicator = c};
    if (!config) return ST_OK;
    f->config = ARENA_NEW(&f->arena, struct config, 1);
    *f->config = *(const struct config *)config;
    crew_set_rank(f->config, c);
    return open_follower(f);
}

static void close_rank(void *state)
{
    struct follower *f = state;
    evaluator_close(&f->evaluator);
    learner_close(&f->learner);
    arena_release(&f->arena);
    free(f);
}

static const struct crew_work follower_work = {open_rank, obey, close_rank};

/* --- processes -------------------------------------------------------------------------------- */

/* Receives the configuration of rank 0, a text of `bytes` bytes. */
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
    crew_set_rank(c, f->communicator);
    f->config = c;
    return open_follower(f);
}

static enum status send_config(struct crew *r, const struct config *c)
{
    struct str s = {0};
    config_print(c, &s);
    enum status st = crew_order(r->communicator, ORDER_BEGIN, 0, s.len);
    if (st == ST_OK) st = communicator_tell(r->communicator, (char *)str_text(&s), s.len);
    str_release(&s);
    communicator_set_timeout(r->communicator, c->ranks.timeout);
    return st;
}

enum status ranks_join(struct crew *r, const struct crew_program *p)
{
    TRY(crew_join(r, p));
    return communicator_rank(r->communicator) ? crew_follow_process(r, &follower_work, NULL)
                                              : ST_OK;
}

/* --- rank 0 ----------------------------------------------------------------------------------- */

enum status ranks_open(struct crew *r, const struct config *c)
{
    enum status st = ST_OK;
    r->listening = false;
    if (r->communicator) return send_config(r, c);
    if (c->ranks.count > 1) st = crew_open(r, c->ranks.count, c->ranks.timeout, &follower_work, c);
    r->listening = false; /* until all agree */
    return st;
}

enum status ranks_agree(struct crew *r, const struct learner *l)
{
    if (!r->communicator) return ST_OK;
    TRY(agree(r->communicator, l));
    r->listening = true;
    return ST_OK;
}
