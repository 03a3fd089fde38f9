#include "train/origin.h"

#include "base/file.h"
#include "base/log.h"
#include "data/kind.h"
#include "engine/optimizer.h"
#include "train/checkpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Replaces the path of a run by the path of its newest intact checkpoint; keeps other sources. */
static enum status resolve(const char **source, struct arena *a)
{
    struct checkpoint c;
    bool found;
    if (!file_is_dir(*source)) return ST_OK;
    if (file_exists(arena_printf(a, "%s/state.json", *source)))
        return checkpoint_open(*source, a, &c);
    if (!file_exists(arena_printf(a, "%s/ckpt", *source))) return ST_OK;
    TRY(checkpoint_find(*source, false, a, &c, &found));
    if (!found)
        return fail(ST_USAGE, "init_from=%s: this run has no checkpoint yet: continue it first",
                    *source);
    *source = c.path;
    return ST_OK;
}

enum status origin_find(struct exchange_model *m, const char *source, struct arena *a)
{
    TRY(resolve(&source, a));
    return exchange_open(m, source, a);
}

enum status origin_config(const char *source, struct config_model *ret, struct arena *a)
{
    TRY(resolve(&source, a));
    return exchange_config(source, ret, a);
}

struct differences {
    const char *source;
    enum status st;
};

static void compare_key(void *user, const char *key, const char *in_file, const char *here)
{
    struct differences *d = user;
    bool padding = !strcmp(key, "pad_vocab");
    if (!(config_key_flags(key) & KEY_MODEL) || padding || d->st != ST_OK) return;
    if (!strcmp(key, "block_size")) {
        if (strtoll(here, NULL, 10) > strtoll(in_file, NULL, 10))
            d->st = fail(ST_USAGE,
                         "init_from=%s has positions for block_size = %s, not %s: set block_size "
                         "to that or less, or leave it out",
                         d->source, in_file, here);
        return;
    }
    d->st = fail(ST_USAGE, "init_from=%s has %s = %s, not %s: leave %s out", d->source, key,
                 in_file, here, key);
}

enum status origin_check_keys(const char *source, const struct config_model *file,
                              const struct config *c)
{
    struct differences d = {source, ST_OK};
    struct config other = *c;
    other.model = *file;
    other.model.dropout = c->model.dropout;
    config_diff(&other, c, compare_key, &d);
    return d.st;
}

/* A model may have fewer than this many padding rows in its token table: nanoGPT's has 50304 rows
 * for the 50257 tokens of GPT-2. */
enum { PADDING_MOST = 128 };

static enum status check_vocabulary(const struct exchange_model *m, const struct vocabulary *v,
                                    struct arena *a)
{
    struct vocabulary own = {};
    bool known = m->vocabulary || m->tokenizer;
    if (v->size > m->tokens)
        return fail(ST_USAGE, "%s has %lld tokens, but the data set has %d: train on its tokens",
                    m->path, (long long)m->tokens, v->size);
    if (known) TRY(exchange_vocabulary(m, &own, a));
    bool fewer = !known && m->tokens - v->size >= PADDING_MOST;
    if ((known && vocabulary_differs(v, &own)) || (fewer && !v->kind->sized))
        return fail(ST_USAGE,
                    "%s has other tokens than the data set (%lld, not %d): make the data set with "
                    "its tokenizer (strobe data NAME --from FILE --tokenizer=...)",
                    m->path, (long long)m->tokens, v->size);
    if (fewer)
        log_warning("%s has %lld tokens, and the data set has %d: ids mean the same text only if "
                    "the data set was made with its tokenizer",
                    m->path, (long long)m->tokens, v->size);
    return ST_OK;
}

static bool takes_states(const struct exchange_model *m, const struct config *c)
{
    return m->states && !c->train.init_weights_only;
}

static enum status check_optimizer(const struct exchange_model *m, const struct config *c)
{
    const struct optimizer *theirs = optimizer_of(&m->config), *ours = optimizer_of(c);
    if (!takes_states(m, c) || theirs == ours) return ST_OK;
    return fail(ST_USAGE,
                "%s has the state of %s, but this run uses %s: take the weights alone "
                "(--init_weights_only=true), or the same optimizer",
                m->path, theirs->name, ours->name);
}

enum status origin_resolve(const char *source, const char **ret, struct arena *a)
{
    const char *path = source;
    TRY(resolve(&path, a));
    char *found = exchange_is_path(path, a) ? realpath(path, NULL) : NULL;
    *ret = found ? arena_strdup(a, found) : path;
    free(found);
    return ST_OK;
}

enum status origin_open(struct exchange_model *m, const char *place, const struct config *c,
                        const struct vocabulary *vocabulary, struct arena *a)
{
    TRY(exchange_open(m, place, a)); /* origin_resolve has verified a checkpoint */
    enum status st = origin_check_keys(place, &m->config.model, c);
    if (st == ST_OK) st = check_vocabulary(m, vocabulary, a);
    if (st == ST_OK) st = check_optimizer(m, c);
    if (st == ST_OK && takes_states(m, c) && m->iter >= c->train.max_iters)
        st = fail(
            ST_USAGE,
            "%s has already done %lld iterations: set --max_iters to more than that, or take the "
            "weights alone (--init_weights_only=true)",
            m->path, (long long)m->iter);
    if (st == ST_OK && takes_states(m, c) && m->steps)
        log_warning("%s: the optimizer has done %g steps in %lld iterations; it goes on as if "
                    "none had been skipped",
                    m->path, m->steps, (long long)m->iter);
    if (st != ST_OK) exchange_close(m);
    return st;
}

static enum status check_finite(const struct exchange_model *m, const struct parameter *p,
                                const float *weight)
{
    for (int64_t i = 0; i < type_elements(&p->type); i++)
        if (!isfinite(weight[i]))
            return fail(ST_NUMERIC,
                        "%s: tensor %s has a value that is not finite: the training that wrote it "
                        "diverged",
                        m->path, p->name);
    return ST_OK;
}

enum status origin_load(const struct exchange_model *m, struct engine *e,
                        const struct weights_tensor *tensors, int64_t *ret_iter)
{
    const struct model *model = &e->program.model;
    bool states = takes_states(m, e->program.config) && tensors[0].state[0].data;
    TRY(exchange_verify(m));
    for (int i = 0; i < model->parameters; i++) {
        const struct parameter *p = &model->parameter[i];
        TRY(exchange_read(m, p, EXCHANGE_WEIGHT, tensors[i].weight));
        TRY(check_finite(m, p, tensors[i].weight));
        for (int k = 0; states && k < m->states; k++)
            TRY(exchange_read(m, p, EXCHANGE_MOMENT1 + k, tensors[i].state[k].data));
    }
    *ret_iter = states ? m->iter : 0;
    return weights_bring(e, tensors);
}
