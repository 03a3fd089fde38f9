/* origin.h - what a new run begins with where init_from names it: a model of another program
 * (exchange/exchange.h), a run of Strobe (its last checkpoint), or one checkpoint.
 *
 * The weights are always taken. Of a training (a run, ckpt.pt) the iteration and the state of the
 * optimizer are taken, too, unless init_weights_only is set. */
#ifndef TRAIN_ORIGIN_H
#define TRAIN_ORIGIN_H

#include "data/dataset.h"
#include "engine/engine.h"
#include "engine/weights.h"
#include "exchange/exchange.h"

/* Sets the keys of the model in `ret` to those of the file, before a configuration is read that may
 * change some of them. */
enum status origin_config(const char *word, struct config_model *ret, struct arena *a);
/* ST_USAGE if a key of the model has a value that the file's weights do not fit. What may differ is
 * a smaller block_size, and the number of rows for padding. */
enum status origin_check_keys(const char *word, const struct config_model *file,
                              const struct config *c);

/* Opens what a word names, of a run its last checkpoint. */
enum status origin_find(struct exchange_model *m, const char *word, struct arena *a);
/* The place that a word means now, in whatever folder it is read later: the name of a published
 * model, or an absolute path, of a run that of its last checkpoint. */
enum status origin_resolve(const char *word, const char **ret, struct arena *a);
/* Opens what origin_resolve returned and checks it against the configuration. `vocabulary`: that of
 * the data set; a model with other tokens is ST_USAGE; with far more than a data set of ids alone,
 * a warning. */
enum status origin_open(struct exchange_model *m, const char *place, const struct config *c,
                        const struct vocabulary *vocabulary, struct arena *a);
/* Fills the tensors of `e` that the configuration takes, and brings them to the device. The
 * iteration at which the run begins: 0 if only weights are taken. */
enum status origin_load(const struct exchange_model *m, struct engine *e,
                        const struct weights_tensor *tensors, int64_t *ret_iter);

#endif
