/* strobe tune CONFIG...: measures the variants of all matmuls and fills the tuning table. */
#include "cli/command.h"
#include "cli/planned.h"
#include "engine/device.h"
#include "engine/memory.h"
#include "engine/tune.h"
#include "present/table_form.h"

#include <unistd.h>

struct options {
    bool remake, json;
    int64_t vocab;
};

/* Measures the missing matmuls of a configuration on its GPU and adds them to the table's file. */
static enum status tune(const struct planned *p, unsigned kinds, const struct target *target,
                        struct program *ret, struct arena *a)
{
    const struct backend *b = target->backend;
    struct tuning *table = ARENA_NEW(a, struct tuning, 1);
    void *context;
    tune_read(&p->config, target, table, a);
    TRY(program_compile(ret, &p->config, p->vocab, target, table, kinds, a));
    int missing = tuning_missing(&ret->lookups);
    if (!missing) {
        log_info("all %d matmuls are measured; --remake measures them again", ret->lookups.n);
        return ST_OK;
    }
    TRY(b->open(device_number(&p->config), &context));
    enum status st = tune_program(ret, kinds, context, table, a);
    b->close(context);
    return st;
}

static enum status check(const struct config *c, struct target *ret)
{
    const char *backend = device_backend(c);
    TRY(device_target(c, backend, true, ret));
    if (!ret->backend->kernels.tune)
        return fail(ST_UNSUPPORTED, "device %s has no kernels to tune; use --device=cuda", backend);
    if (c->plan.tune == TUNE_OFF) return fail(ST_USAGE, "tune=off uses no table; leave it at auto");
    if (c->plan.deterministic)
        return fail(ST_USAGE, "deterministic=true uses no tuning table; leave it out");
    return ST_OK;
}

static void print(const struct program *program, const char *config, const struct options *o)
{
    struct str s = {0};
    if (o->json)
        json_print(json_pack("{s:s, s:s, s:o}", "config", config, "device", program->target->name,
                             "matmuls", tune_json(program)),
                   &s);
    else
        tune_print(program, &s);
    command_print(&s);
}

/* Measures the matmuls of a training run. `words`: the configuration's file, then overrides. */
static enum status tune_config(char **words, int n, const struct options *o, bool first,
                               struct arena *a)
{
    struct planned p;
    struct program program;
    struct target target;
    TRY(planned_read(&p, n, words, o->vocab, NULL, a));
    TRY(check(&p.config, &target));
    const char *path = tuning_path(target.name, a);
    if (o->remake && first && path) unlink(path);
    unsigned kinds = memory_kinds(&p.config, EXTENT_STEP);
    if (model_def(&p.config.model)->trained)
        kinds |= 1u << GRAPH_EVAL | 1u << GRAPH_LOGITS | 1u << GRAPH_DECODE;
    TRY(tune(&p, kinds, &target, &program, a));
    print(&program, words[0], o);
    if (path) log_info("the table of %s is %s", target.name, path);
    return ST_OK;
}

enum status cmd_tune(int argc, char **argv, struct arena *a)
{
    struct options o = {.remake = false};
    const struct opt options[] = {
        {"remake", OPT_FLAG, &o.remake, NULL, "delete the table and measure everything"},
        {"vocab", OPT_INT, &o.vocab, "N", "size of the vocabulary (the data set's)"},
        {"json", OPT_FLAG, &o.json, NULL, "print a JSON object for each configuration"},
        {0},
    };
    TRY(opt_parse(options, &argc, argv, config_is_key));
    char **words = ARENA_NEW(a, char *, argc + 1);
    int overrides = 0, configs = 0;
    for (int i = 0; i < argc; i++)
        if (config_is_override(argv[i])) words[++overrides] = argv[i];
    for (int i = 0; i < argc; i++) {
        if (config_is_override(argv[i])) continue;
        words[0] = argv[i];
        TRY(tune_config(words, overrides + 1, &o, configs++ == 0, a));
    }
    if (configs) return ST_OK;
    return fail(ST_USAGE, "give the configuration whose matmuls are to be measured");
}
