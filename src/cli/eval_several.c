#include "cli/eval_several.h"

#include "base/interrupt.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/run_word.h"
#include "exchange/published.h"
#include "present/table.h"
#include "present/table_cells.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 5 };
/* clang-format off */
#define COLUMNS(X) \
    X("model", "model", "run, checkpoint or model of another program", TEXT, model) \
    X("parameters", "parameters", "without those of positions", COUNT, f, (double)f->parameters) \
    X("train_loss", "train loss", "mean over the batches of the training split", NUMBER, f, DIGITS, f->loss[SPLIT_TRAIN]) \
    X("val_loss", "val loss", "mean over the batches of the validation split", NUMBER, f, DIGITS, f->loss[SPLIT_VAL]) \
    X("val_perplexity", "perplexity", "e to the power of the validation loss", NUMBER, f, DIGITS, exp(f->loss[SPLIT_VAL])) \
    X("val_bits_per_byte", "bits/byte", "of the validation split", NUMBER, f, DIGITS, f->bits_per_byte[SPLIT_VAL]) \
    X("published_val_loss", "nanoGPT's", "validation loss on OpenWebText that nanoGPT published", NUMBER, true, 3, published)
/* clang-format on */
static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

enum status eval_one(struct saved_run *s, bool named, struct eval_figures *ret, struct arena *a)
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

static bool is_model(const char *word)
{
    return !config_is_override(word);
}

int eval_models(int argc, char *const *argv)
{
    int n = 0;
    for (int i = 0; i < argc; i++) n += is_model(argv[i]);
    return n;
}

static bool is_openwebtext(int argc, char *const *argv)
{
    for (int i = 0; i < argc; i++)
        if (!strcmp(argv[i], "--dataset=openwebtext")) return true;
    return false;
}

static enum status measure(int argc, char *const *argv, const char *model, bool best,
                           struct eval_figures *ret, struct arena *a)
{
    struct saved_run s;
    char **word = ARENA_NEW(a, char *, argc + 1);
    int words = 0;
    bool named = false;
    word[words++] = arena_strdup(a, model);
    for (int i = 0; i < argc; i++) {
        if (is_model(argv[i])) continue;
        named |= !strncmp(argv[i], "--dataset=", 10);
        word[words++] = argv[i];
    }
    TRY(run_word_open(&s, words, word, "eval", best, a));
    return eval_one(&s, named, ret, a);
}

/* `f`: NULL if it could not be measured; `published`: NAN: nothing comparable was. */
static void set_row(struct table_row row, const char *model, const struct eval_figures *f,
                    double published)
{
    COLUMNS(TABLE_CELL)
}

static void print(const struct table *t, bool json)
{
    struct str s = {0};
    if (json) {
        command_print_json(table_json(t));
        return;
    }
    table_print_text(t, &s);
    command_print(&s);
}

enum status eval_several(int argc, char *const *argv, bool best, bool json)
{
    struct arena a = {0};
    int rows = eval_models(argc, argv), row = 0, measured = 0;
    struct table t = table_new(columns, COUNT_OF(columns), rows, &a);
    enum status st = ST_OK;
    for (int i = 0; i < argc && st != ST_INTERRUPTED; i++) {
        struct eval_figures f;
        struct arena own = {0};
        double published = is_openwebtext(argc, argv) ? published_loss(argv[i]) : NAN;
        if (!is_model(argv[i])) continue;
        log_info("%s (%d of %d)", argv[i], row + 1, rows);
        st = measure(argc, argv, argv[i], best, &f, &own);
        set_row((struct table_row){&t, row, 0, &a}, argv[i], st == ST_OK ? &f : NULL, published);
        if (st == ST_OK) measured++;
        if (st != ST_OK && st != ST_INTERRUPTED) log_warning("%s", fail_message());
        arena_release(&own);
        row++;
    }
    t.rows = row;
    if (measured) print(&t, json);
    arena_release(&a);
    return st == ST_INTERRUPTED || !measured ? st : ST_OK;
}
