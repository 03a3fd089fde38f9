/* saved.h - loads a trained model: configuration, weights, vocabulary. It is a run in its
 * directory, or a model of another program (exchange/exchange.h). */
#ifndef TRAIN_SAVED_H
#define TRAIN_SAVED_H

#include "config/config.h"
#include "data/dataset.h"
#include "engine/engine.h"
#include "train/checkpoint.h"

struct saved_run {
    const char *run_dir;
    const char *foreign; /* the model of another program, as the user named it; NULL: it is a run */
    struct config
        config; /* the checkpoint's; overrides may change keys that do not define the model */
    struct checkpoint checkpoint;
    struct vocabulary vocabulary;
    bool searched; /* the checkpoint was not named but found: the last one, or the best */
    bool best;
};

/* Opens a run directory with its last checkpoint (`best`: the one with the lowest validation loss),
 * a single checkpoint such as runs/NAME/ckpt/000500, or a model of another program, whose tokenizer
 * is its own, GPT-2's if it has as many tokens, or unknown. `checkpoint` then has the path and the
 * iteration alone. */
enum status saved_open(struct saved_run *s, const char *path, bool best, struct arena *a);
/* The configuration that the checkpoint was trained with, which its digests protect. ST_USAGE if
 * the checkpoint is of another run. Warns of every key that has another value in the run's
 * config.conf, and of a config.conf that cannot be used. */
enum status saved_config(const char *run, const struct checkpoint *c, struct config *ret,
                         struct arena *a);
/* ST_FORMAT if the checkpoint has fewer weights than the model of its configuration, which has
 * passed model_check. Called before the graphs are built: those of a large model that a small file
 * claims could take all memory. */
enum status saved_check_size(const struct checkpoint *c, const struct config *own, struct arena *a);
/* Applies overrides; ST_USAGE if one changes a key that defines the model. Keys that only another
 * device supports get a value that this one does (device_adapt). */
enum status saved_override(struct saved_run *s, int words, char *const *word, struct arena *a);
/* Opens an engine with the plans of `kinds` and the weights of this run. If a training has removed
 * the checkpoint meanwhile, those of the next one, which `s` then holds. */
enum status saved_engine(struct saved_run *s, unsigned kinds, struct engine *ret_engine,
                         struct arena *a);

/* ST_USAGE if the data set is not that of the run by its vocabulary.json: the vocabulary or,
 * unless `other_text`, its tokens differ. Warns if other tokens are accepted. */
enum status saved_check_data(const char *run, const struct dataset *d, bool other_text,
                             struct arena *a);
/* The same for what was opened; of a model of another program ST_USAGE if the data set has more
 * tokens. */
enum status saved_check_eval(const struct saved_run *s, const struct dataset *d, bool named,
                             struct arena *a);
/* ST_USAGE if the configurations differ in a key that defines the model or, if `training` is set,
 * in one that defines the training. */
enum status saved_check_keys(const struct config *before, const struct config *now, bool training,
                             const char *run_dir);

#endif
