/* origin.h - starts a new run from the model in the key init_from: a model of another program
 * (exchange/exchange.h), a run of Strobe (its last checkpoint), or one checkpoint.
 *
 * The new run takes the weights. If the source is a training (a run, ckpt.pt), the new run also
 * takes the iteration and the optimizer state, unless init_weights_only is set. */
#ifndef TRAIN_ORIGIN_H
#define TRAIN_ORIGIN_H

#include "data/dataset.h"
#include "engine/engine.h"
#include "engine/weights.h"
#include "exchange/exchange.h"

/* Sets the model keys in `ret` to those of the file. Call it before reading a configuration, which
 * may change some of these keys. */
enum status origin_config(const char *source, struct config_model *ret, struct arena *a);
/* ST_USAGE if a model key of `c` does not fit the weights of the file. dropout and pad_vocab may
 * differ, and block_size may be smaller. */
enum status origin_check_keys(const char *source, const struct config_model *file,
                              const struct config *c);

/* Opens the model that `source` names; for a run, its last checkpoint. */
enum status origin_find(struct exchange_model *m, const char *source, struct arena *a);
/* An equivalent source that does not depend on the current folder: the name of a published model,
 * or an absolute path; for a run, the path of its last checkpoint. */
enum status origin_resolve(const char *source, const char **ret, struct arena *a);
/* Opens the result of origin_resolve and checks it against the configuration and the vocabulary of
 * the data set. ST_USAGE if the model has other tokens. Warns if the data set has token ids without
 * their texts and has far fewer tokens than the model. */
enum status origin_open(struct exchange_model *m, const char *place, const struct config *c,
                        const struct vocabulary *vocabulary, struct arena *a);
/* Reads the tensors that the configuration asks for and copies them to the device of `e`.
 * *ret_iter: the iteration at which the run begins; 0 if only weights are taken. */
enum status origin_load(const struct exchange_model *m, struct engine *e,
                        const struct weights_tensor *tensors, int64_t *ret_iter);

#endif
