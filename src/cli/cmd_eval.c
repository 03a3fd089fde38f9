/* strobe eval: the training and validation loss of a checkpoint, estimated as during training. */
#include "base/opt.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/run_word.h"
#include "train/evaluator.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void print_text(struct saved_run *s, const double *loss)
{
    const struct config *c = &s->config;
    char train[32], val[32];
    printf("%s: train loss %s, val loss %s\n", s->checkpoint.path,
           str_loss(train, loss[SPLIT_TRAIN]), str_loss(val, loss[SPLIT_VAL]));
    printf("(means over %lld batches of %lld x %lld tokens of each split; set with --eval_iters)\n",
           (long long)c->train.eval_iters, (long long)c->data.batch_size,
           (long long)c->model.block_size);
}

static void print_json(struct saved_run *s, const double *loss)
{
    command_print_json(json_pack("{s:i, s:s, s:I, s:f, s:f, s:I}", "v", 1, "checkpoint",
                                 s->checkpoint.path, "iter", (json_int_t)s->checkpoint.state.iter,
                                 "train_loss", loss[SPLIT_TRAIN], "val_loss", loss[SPLIT_VAL],
                                 "batches", (json_int_t)s->config.train.eval_iters));
}

/* `named`: the command line names the data set. */
static enum status eval(struct saved_run *s, bool named, bool json, struct arena *a)
{
    struct dataset d;
    struct engine e = {0};
    struct evaluator v = {0};
    double loss[SPLIT_COUNT];
    enum status st;
    TRY(dataset_open(&d, s->config.data.data_dir, s->config.data.dataset, a));
    TRY_OUT(st, saved_check_data(&s->dir, &d, named, a));
    TRY_OUT(st, saved_engine(s, 1u << GRAPH_EVAL, &e, a));
    TRY_OUT(st, evaluator_init(&v, &e, &d, NULL, a));
    TRY_OUT(st, evaluator_run(&v, s->checkpoint.state.iter, loss));
    if (json)
        print_json(s, loss);
    else
        print_text(s, loss);
out:
    evaluator_close(&v);
    engine_close(&e);
    dataset_close(&d);
    return st;
}

enum status cmd_eval(int argc, char **argv)
{
    bool best = false, json = false;
    const struct opt options[] = {
        {"best", OPT_FLAG, &best, NULL,
         "use the checkpoint with the lowest validation loss, not the last one"},
        {"json", OPT_FLAG, &json, NULL, "print the losses as JSON"},
        {0},
    };
    TRY(opt_parse(options, &argc, argv, config_is_key));
    struct arena a = {0};
    struct saved_run s;
    bool named = false;
    for (int i = 0; i < argc; i++) named |= !strncmp(argv[i], "--dataset=", 10);
    enum status st = run_word_open(&s, argc, argv, "eval", best, &a);
    if (st == ST_OK) st = eval(&s, named, json, &a);
    arena_release(&a);
    return st;
}
