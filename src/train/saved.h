/* saved.h - a run read back from its directory: configuration, weights, vocabulary. */
#ifndef TRAIN_SAVED_H
#define TRAIN_SAVED_H

#include "config/config.h"
#include "data/dataset.h"
#include "engine/engine.h"
#include "train/checkpoint.h"

struct saved {
    const char *run_dir;
    struct config
        config; /* of the run; what it is used for may change keys that are not the model's */
    struct checkpoint checkpoint;
    struct vocabulary vocabulary;
};

/* Finds a run directory's last checkpoint (`best`: the one of its lowest validation loss), or takes one
 * checkpoint of it, as runs/NAME/ckpt/000500. */
enum status saved_open(struct saved *s, const char *path, bool best, struct arena *a);
/* Applies overrides; those of the model are refused. */
enum status saved_override(struct saved *s, int words, char *const *word, struct arena *a);
/* Opens an engine with the plans of `kinds` and this run's weights. */
enum status saved_engine(const struct saved *s, unsigned kinds, struct engine *ret_engine,
                         struct arena *a);

/* ST_USAGE if the data set's tokens mean something else than those of the run. */
enum status saved_check_vocabulary(const struct vocabulary *of_run, const struct dataset *d,
                                   const char *run_dir);
/* ST_USAGE if a key differs that makes the model what it is, or (`training`) the training. */
enum status saved_check_keys(const struct config *before, const struct config *now, bool training,
                             const char *run_dir);

#endif
