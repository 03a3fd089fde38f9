/* strobe eval: the losses of a checkpoint, estimated as during training, and what they are as
 * perplexities and as bits per byte of text. */
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/eval_several.h"
#include "cli/run_word.h"
#include "data/source.h"
#include "train/evaluator.h"
#include "train/logits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789"

static void print_text(struct saved_run *s, const struct eval_figures *f)
{
    const struct config *c = &s->config;
    char train[32], val[32];
    const double *loss = f->loss, *bits = f->bits_per_byte;
    printf("%s: train loss %s, val loss %s\n", s->checkpoint.path,
           str_loss(train, loss[SPLIT_TRAIN]), str_loss(val, loss[SPLIT_VAL]));
    printf("perplexity: train %.4g, val %.4g", exp(loss[SPLIT_TRAIN]), exp(loss[SPLIT_VAL]));
    if (!isnan(bits[SPLIT_TRAIN]))
        printf("; bits per byte: train %s, val %s", str_loss(train, bits[SPLIT_TRAIN]),
               str_loss(val, bits[SPLIT_VAL]));
    printf("\n(means over %lld batches of %lld x %lld tokens of each split; set with "
           "--eval_iters)\n",
           (long long)c->train.eval_iters, (long long)c->data.batch_size,
           (long long)c->model.block_size);
}

static void print_json(struct saved_run *s, const struct eval_figures *f)
{
    const double *loss = f->loss, *bits = f->bits_per_byte;
    command_print_json(json_pack(
        "{s:i, s:s, s:I, s:f, s:f, s:f, s:f, s:o, s:o, s:I}", "v", 1, "checkpoint",
        s->checkpoint.path, "iter", (json_int_t)s->checkpoint.state.iter, "train_loss",
        loss[SPLIT_TRAIN], "val_loss", loss[SPLIT_VAL], "train_perplexity", exp(loss[SPLIT_TRAIN]),
        "val_perplexity", exp(loss[SPLIT_VAL]), "train_bits_per_byte",
        number_or_null(bits[SPLIT_TRAIN]), "val_bits_per_byte", number_or_null(bits[SPLIT_VAL]),
        "batches", (json_int_t)s->config.train.eval_iters));
}

static int64_t tokens_of(const struct saved_run *s)
{
    return max_i64(s->vocabulary.size, s->config.model.vocab_size);
}

/* The ids of a file, separated by anything but digits, as `strobe tokenize` prints them. */
static enum status read_ids(const struct saved_run *s, const char *file, struct arena *a,
                            int32_t **ret, int64_t *ret_count)
{
    struct source_text t;
    int64_t most = s->config.model.block_size, count = 0, tokens = tokens_of(s);
    TRY(source_file(&t, file, a));
    *ret = ARENA_NEW(a, int32_t, most);
    for (const char *at = t.text + strcspn(t.text, DIGITS); *at; at += strcspn(at, DIGITS)) {
        char *end;
        long long id = strtoll(at, &end, 10);
        if (id >= tokens)
            return fail(ST_USAGE, "%s: id %lld is not below the %lld tokens of the model", file, id,
                        (long long)tokens);
        if (count == most)
            return fail(ST_USAGE, "%s has more ids than the block_size of the model, %lld", file,
                        (long long)most);
        (*ret)[count++] = (int32_t)id;
        at = end;
    }
    *ret_count = count;
    return count ? ST_OK : fail(ST_USAGE, "%s has no ids; `strobe tokenize` prints some", file);
}

static enum status write_logits(struct saved_run *s, const char *ids_file, const char *path,
                                struct arena *a)
{
    struct engine e;
    int32_t *ids = NULL;
    int64_t count = 0;
    TRY(read_ids(s, ids_file, a, &ids, &count));
    if (file_exists(path))
        return fail(ST_USAGE, "%s exists already: choose another file, or remove it", path);
    TRY(saved_engine(s, 1u << GRAPH_LOGITS, &e, a));
    enum status st = logits_write(&e, ids, count, path, a);
    engine_close(&e);
    if (st == ST_OK)
        log_info("%s: float32 (%lld,%lld), the logits after each id", path, (long long)count,
                 (long long)tokens_of(s));
    return st;
}

static enum status eval(struct saved_run *s, bool named, bool json, struct arena *a)
{
    struct eval_figures f;
    TRY(eval_one(s, named, &f, a));
    if (json)
        print_json(s, &f);
    else
        print_text(s, &f);
    return ST_OK;
}

enum status cmd_eval(int argc, char **argv)
{
    bool best = false, json = false;
    const char *ids = NULL, *logits = NULL;
    const struct opt options[] = {
        {"best", OPT_FLAG, &best, NULL,
         "use the checkpoint with the lowest validation loss, not the last one"},
        {"json", OPT_FLAG, &json, NULL, "print the losses as JSON"},
        {"ids", OPT_TEXT, &ids, "FILE",
         "with --logits: the ids of one sequence, as strobe tokenize prints them; - is the "
         "standard input"},
        {"logits", OPT_TEXT, &logits, "FILE.npy",
         "write the logits for --ids, float32 (ids, tokens), instead of a loss"},
        {0},
    };
    TRY(opt_parse(options, &argc, argv, config_is_key));
    if (eval_models(argc, argv) > 1 && !ids && !logits) return eval_several(argc, argv, best, json);
    struct arena a = {0};
    struct saved_run s;
    bool named = false;
    for (int i = 0; i < argc; i++) named |= !strncmp(argv[i], "--dataset=", 10);
    enum status st = run_word_open(&s, argc, argv, "eval", best, &a);
    if (st == ST_OK && !ids != !logits)
        st = fail(ST_USAGE, "--ids=FILE and --logits=FILE.npy belong together");
    if (st == ST_OK && logits) {
        st = write_logits(&s, ids, logits, &a);
        arena_release(&a);
        return st;
    }
    if (st == ST_OK) st = eval(&s, named, json, &a);
    arena_release(&a);
    return st;
}
