/* strobe eval: the losses of a checkpoint, estimated as during training, and what they are as
 * perplexities and as bits per byte of text; of several models, a table. */
#include "base/file.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/run_word.h"
#include "data/source.h"
#include "exchange/published.h"
#include "present/table.h"
#include "present/table_cells.h"
#include "train/evaluator.h"
#include "train/logits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is measured of a model. */
struct figures {
    double loss[SPLIT_COUNT], bits_per_byte[SPLIT_COUNT]; /* NAN: the texts are not known */
    int64_t parameters;                                   /* without positions */
    const char *dtype;                                    /* in which it was computed */
};

/* `named`: the command line names the data set; without it a model of another program is
 * ST_USAGE. */
static enum status eval_one(struct saved_run *s, bool named, struct figures *ret, struct arena *a)
{
    struct dataset d;
    struct engine e = {0};
    struct evaluator v = {0};
    enum status st;
    if (s->foreign && !named)
        return fail(ST_USAGE, "name a data set for %s, as in --dataset=NAME", s->foreign);
    TRY(dataset_open(&d, s->config.data.data_dir, s->config.data.dataset, a));
    TRY_OUT(st, saved_check_eval(s, &d, named, a));
    TRY_OUT(st, saved_engine(s, 1u << GRAPH_EVAL, &e, a));
    TRY_OUT(st, evaluator_init(&v, &e, &d, NULL, a));
    v.vocabulary = &d.vocabulary;
    TRY_OUT(st, evaluator_run(&v, s->checkpoint.state.iter, ret->loss));
    ret->parameters = model_count(&e.program.model, false);
    ret->dtype = config_value_text(&s->config, "dtype", a);
    for (int i = 0; i < SPLIT_COUNT; i++)
        ret->bits_per_byte[i] = v.text_bytes[i] <= 0 ? NAN
                                                     : ret->loss[i] / M_LN2 * (double)v.targets[i] /
                                                           (double)v.text_bytes[i];
out:
    evaluator_close(&v);
    engine_close(&e);
    dataset_close(&d);
    return st;
}

static void print_text(struct saved_run *s, const struct figures *f)
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
           "--eval_iters; computed with dtype=%s)\n",
           (long long)c->train.eval_iters, (long long)c->data.batch_size,
           (long long)c->model.block_size, f->dtype);
}

static void print_json(struct saved_run *s, const struct figures *f)
{
    const double *loss = f->loss, *bits = f->bits_per_byte;
    command_print_json(json_pack(
        "{s:i, s:s, s:I, s:f, s:f, s:f, s:f, s:o, s:o, s:I, s:s}", "v", 1, "checkpoint",
        s->checkpoint.path, "iter", (json_int_t)s->checkpoint.state.iter, "train_loss",
        loss[SPLIT_TRAIN], "val_loss", loss[SPLIT_VAL], "train_perplexity", exp(loss[SPLIT_TRAIN]),
        "val_perplexity", exp(loss[SPLIT_VAL]), "train_bits_per_byte",
        number_or_null(bits[SPLIT_TRAIN]), "val_bits_per_byte", number_or_null(bits[SPLIT_VAL]),
        "batches", (json_int_t)s->config.train.eval_iters, "dtype", f->dtype));
}

static int64_t tokens_of(const struct saved_run *s)
{
    return max_i64(s->vocabulary.size, s->config.model.vocab_size);
}

#define DIGITS "0123456789"

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
        log_info("%s: float32 (%lld,%lld), the logits after each id, computed with dtype=%s", path,
                 (long long)count, (long long)tokens_of(s),
                 config_value_text(&s->config, "dtype", a));
    return st;
}

static enum status eval(struct saved_run *s, bool named, bool json, struct arena *a)
{
    struct figures f;
    TRY(eval_one(s, named, &f, a));
    if (json)
        print_json(s, &f);
    else
        print_text(s, &f);
    return ST_OK;
}

/* --- several models -------------------------------------------------------------------------- */

enum { PLACES = 5 };
/* clang-format off */
#define COLUMNS(X) \
    X("model", "model", "run, checkpoint or model of another program", TEXT, model) \
    X("parameters", "parameters", "without those of positions", COUNT, f, (double)f->parameters) \
    X("train_loss", "train loss", "mean over the batches of the training split", NUMBER, f, PLACES, f->loss[SPLIT_TRAIN]) \
    X("val_loss", "val loss", "mean over the batches of the validation split", NUMBER, f, PLACES, f->loss[SPLIT_VAL]) \
    X("val_perplexity", "perplexity", "e to the power of the validation loss", NUMBER, f, PLACES, exp(f->loss[SPLIT_VAL])) \
    X("val_bits_per_byte", "bits/byte", "of the validation split", NUMBER, f, PLACES, f->bits_per_byte[SPLIT_VAL]) \
    X("dtype", "dtype", "in which the losses were computed", TEXT, f ? f->dtype : "") \
    X("published_val_loss", "nanoGPT's", "validation loss on OpenWebText that nanoGPT published", NUMBER, true, 3, published)
/* clang-format on */
static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

static int models_of(int argc, char *const *argv)
{
    int n = 0;
    for (int i = 0; i < argc; i++) n += run_word_path(argv[i]) != NULL;
    return n;
}

static bool names_data(int argc, char *const *argv)
{
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "--dataset=", 10)) return true;
    return false;
}

static bool is_openwebtext(int argc, char *const *argv)
{
    for (int i = 0; i < argc; i++)
        if (!strcmp(argv[i], "--dataset=openwebtext")) return true;
    return false;
}

static enum status measure(int argc, char *const *argv, const char *model, bool best,
                           struct figures *ret, struct arena *a)
{
    struct saved_run s;
    char **word = ARENA_NEW(a, char *, argc + 1);
    int words = 0;
    word[words++] = arena_strdup(a, model);
    for (int i = 0; i < argc; i++)
        if (!run_word_path(argv[i])) word[words++] = argv[i];
    bool named = names_data(words, word);
    TRY(run_word_open(&s, words, word, "eval", best, a));
    return eval_one(&s, named, ret, a);
}

/* `f`: NULL if it could not be measured; `published`: NAN if nothing comparable was published. */
static void set_row(struct table_row row, const char *model, const struct figures *f,
                    double published)
{
    COLUMNS(TABLE_CELL)
}

static void print_table(const struct table *t, bool json)
{
    struct str s = {0};
    if (json) {
        command_print_json(table_json(t));
        return;
    }
    table_print_text(t, &s);
    command_print(&s);
}

/* A model that cannot be opened or does not fit has a row without figures, and a warning with the
 * reason; if there is none that can, that is the failure. */
static enum status eval_several(int argc, char *const *argv, bool best, bool json, struct arena *a)
{
    int rows = models_of(argc, argv), row = 0, measured = 0;
    struct table t = table_new(columns, COUNT_OF(columns), rows, a);
    enum status st = ST_OK;
    for (int i = 0; i < argc && st != ST_INTERRUPTED; i++) {
        struct figures f;
        struct arena own = {0};
        double published = is_openwebtext(argc, argv) ? published_loss(argv[i]) : NAN;
        if (!run_word_path(argv[i])) continue;
        log_info("%s (%d of %d)", argv[i], row + 1, rows);
        st = measure(argc, argv, argv[i], best, &f, &own);
        if (st == ST_OK) f.dtype = arena_strdup(a, f.dtype);
        set_row((struct table_row){&t, row, 0, a}, argv[i], st == ST_OK ? &f : NULL, published);
        if (st == ST_OK) measured++;
        if (st != ST_OK && st != ST_INTERRUPTED) log_warning("%s", fail_message());
        arena_release(&own);
        row++;
    }
    t.rows = row;
    if (measured) print_table(&t, json);
    return st == ST_INTERRUPTED || !measured ? st : ST_OK;
}

/* --- the command ----------------------------------------------------------------------------- */

enum status cmd_eval(int argc, char **argv, struct arena *a)
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
    if (models_of(argc, argv) > 1 && !ids && !logits)
        return eval_several(argc, argv, best, json, a);
    struct saved_run s;
    bool named = names_data(argc, argv);
    TRY(run_word_open(&s, argc, argv, "eval", best, a));
    if (!ids != !logits) return fail(ST_USAGE, "--ids=FILE and --logits=FILE.npy belong together");
    return logits ? write_logits(&s, ids, logits, a) : eval(&s, named, json, a);
}
