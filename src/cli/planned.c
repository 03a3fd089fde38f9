#include "cli/planned.h"

#include "backend/backend.h"
#include "base/threads.h"
#include "cli/command.h"
#include "data/dataset.h"
#include "data/kind.h"
#include "engine/device.h"
#include "engine/memory.h"
#include "engine/tune.h"
#include "machine/machine.h"

#include <string.h>

/* Usual sizes of vocabularies: the characters of Tiny Shakespeare, the tokens of GPT-2. */
enum { CHARACTERS = 65, GPT2_TOKENS = GPT2_VOCABULARY };

enum status planned_vocabulary(const struct config *c, int64_t given, int64_t *ret, struct arena *a)
{
    const struct config_data *d = &c->data;
    if (given < 0 || given > VOCABULARY_MAX)
        return fail(ST_USAGE, "--vocab is 1 to %d", VOCABULARY_MAX);
    *ret = model_def(&c->model)->trained ? given : 0;
    if (!model_def(&c->model)->trained) return ST_OK;
    if (given) return model_check_vocabulary(&c->model, given);
    if (c->model.vocab_size) {
        *ret = c->model.vocab_size;
        return ST_OK;
    }
    TRY(dataset_vocabulary(d->data_dir, d->dataset, ret, a));
    if (*ret) return ST_OK;
    *ret = strstr(d->dataset, "char") ? CHARACTERS : GPT2_TOKENS;
    log_info("the data set %s does not exist; assuming a vocabulary of %lld (set --vocab=N)",
             d->dataset, (long long)*ret);
    return ST_OK;
}

enum status planned_read(struct planned *p, int argc, char **argv, int64_t vocab,
                         const char *tuning, struct arena *a)
{
    *p = (struct planned){.arena = a, .tuning_file = tuning};
    TRY(command_read_config(&p->config, argc, argv, true, a));
    TRY(model_check(&p->config));
    threads_set(p->config.plan.threads);
    TRY(machine_choose(&p->config, NULL, false, a));
    TRY(planned_vocabulary(&p->config, vocab, &p->vocab, a));
    return ST_OK;
}

/* *ret: the target on which the entries of the file were measured. */
static enum status read_tuning(struct planned *p, const struct backend *b, struct target *ret)
{
    if (!b->kernels.tune)
        return fail(ST_USAGE, "--tuning=%s: device %s has no kernels to tune; give --device=cuda",
                    p->tuning_file, b->name);
    if (p->config.plan.tune == TUNE_OFF)
        return fail(ST_USAGE, "--tuning=%s and --tune=off exclude each other", p->tuning_file);
    TRY(tuning_read(p->tuning_file, &p->tuning, p->arena));
    *ret = p->tuning.target;
    ret->backend = b;
    return ST_OK;
}

/* The target to compile for, and the table; NULL: none. */
static enum status find_target(struct planned *p, const char *backend, struct target *ret,
                               const struct tuning **ret_tuning)
{
    if (!backend) backend = device_backend(&p->config);
    const struct backend *b = backend_find(backend);
    if (!b && strcmp(backend, "cuda") != 0)
        return fail(ST_USAGE, "there is no backend %s; strobe info lists the backends", backend);
    if (p->tuning_file && b) {
        TRY(read_tuning(p, b, ret));
        *ret_tuning = &p->tuning;
        return ST_OK;
    }
    return tune_target(&p->config, backend, ret, ret_tuning, p->arena);
}

enum status planned_plan(struct planned *p, unsigned kinds, const char *backend)
{
    struct target target;
    const struct tuning *tuning;
    TRY(find_target(p, backend, &target, &tuning));
    return program_compile(&p->program, &p->config, p->vocab, &target, tuning, kinds, p->arena);
}

enum status planned_graph(struct planned *p, enum graph_kind kind, const char *after)
{
    struct target target;
    const struct tuning *tuning;
    TRY(find_target(p, NULL, &target, &tuning));
    return program_compile_to(&p->program, &p->config, p->vocab, &target, tuning, kind, after,
                              p->arena);
}

enum status planned_training_plans(struct planned *p, const char *backend)
{
    return planned_plan(p, memory_kinds(&p->config, EXTENT_STEP), backend);
}

const char *planned_words(struct planned *p)
{
    static const char *const keys[] = {"fusion", "flash", "dtype", "batch_size", "block_size"};
    const struct config *c = &p->config;
    const char *words = "", *gap = "";
    if (c->model.kind != MODEL_GPT) {
        words = arena_printf(p->arena, "model=%s", model_words[c->model.kind]);
        gap = " ";
    }
    for (int i = 0; i < COUNT_OF(keys); i++, gap = " ")
        words = arena_printf(p->arena, "%s%s%s=%s", words, gap, keys[i],
                             config_value_text(c, keys[i], p->arena));
    if (c->plan.recompute != RECOMPUTE_NONE)
        words = arena_printf(p->arena, "%s recompute=%s", words,
                             config_value_text(c, "recompute", p->arena));
    return p->vocab ? arena_printf(p->arena, "%s vocabulary=%lld", words, (long long)p->vocab)
                    : words;
}
