/* saved.h - loads a trained model (configuration, weights, vocabulary): a run, or a model of
 * another program (exchange/exchange.h). */
#ifndef TRAIN_SAVED_H
#define TRAIN_SAVED_H

#include "config/config.h"
#include "data/dataset.h"
#include "engine/engine.h"
#include "train/checkpoint.h"

struct saved_run {
    const char *run_dir;
    const char *foreign; /* the user's name of another program's model; NULL: it is a run */
    struct config
        config; /* of the checkpoint; overrides may change keys that do not define the model */
    struct checkpoint checkpoint;
    struct vocabulary vocabulary;
    bool searched; /* the user named the run; its last or best checkpoint was selected */
    bool best;
};

/* Opens a run directory with its last checkpoint (`best`: the one with the lowest validation loss),
 * a single checkpoint such as runs/NAME/ckpt/000500, or a model of another program: with its own
 * tokenizer, else GPT-2's if it has as many tokens; only path and iteration in `checkpoint`. */
enum status saved_open(struct saved_run *s, const char *path, bool best, struct arena *a);
/* Reads the configuration from the checkpoint, where it is protected by a digest. ST_USAGE if the
 * checkpoint belongs to another run. Warns of every key that has another value in the run's
 * config.conf, and of a config.conf that cannot be used. */
enum status saved_config(const char *run, const struct checkpoint *c, struct config *ret,
                         struct arena *a);
/* ST_FORMAT if the checkpoint has fewer weights than the model of its configuration, which has
 * passed model_check; ST_OK if the file of weights is gone. Called before the graphs are built:
 * those of a large model that a small file claims could take all memory. */
enum status saved_check_size(const struct checkpoint *c, const struct config *own, struct arena *a);
/* Takes the configuration `c`, which is s->config with overrides and no value auto; ST_USAGE if an
 * override changes a key that defines the model. Other values of s->config that this device does
 * not support are replaced by supported ones (device_adapt). */
enum status saved_override(struct saved_run *s, const struct config *c);
/* Opens an engine with the plans of `kinds` and the weights of this run. If a training removed the
 * selected checkpoint meanwhile, selects again and updates `s`. */
enum status saved_engine(struct saved_run *s, unsigned kinds, struct engine *ret_engine,
                         struct arena *a);

/* Compares a data set with the run's vocabulary.json. ST_USAGE if the vocabulary differs or, unless
 * `other_text`, the tokens of the text differ. Warns if other tokens are accepted. */
enum status saved_check_data(const char *run, const struct dataset *d, bool other_text,
                             struct arena *a);
/* The same for an opened model; ST_USAGE also if a foreign model has fewer tokens than the data. */
enum status saved_check_eval(const struct saved_run *s, const struct dataset *d, bool named,
                             struct arena *a);
/* ST_USAGE if the configurations differ in a key that defines the model or, if `training` is set,
 * in one that defines the training. */
enum status saved_check_keys(const struct config *before, const struct config *now, bool training,
                             const char *run_dir);

#endif
