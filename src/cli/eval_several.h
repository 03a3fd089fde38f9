/* eval_several.h - the losses of several models on one data set, as a table. */
#ifndef CLI_EVAL_SEVERAL_H
#define CLI_EVAL_SEVERAL_H

#include "train/evaluator.h"
#include "train/saved.h"

/* What `strobe eval` measures of a model. */
struct eval_figures {
    double loss[SPLIT_COUNT], bits_per_byte[SPLIT_COUNT]; /* NAN: the texts are not known */
    int64_t parameters;                                   /* without positions */
};

/* `named`: the command line names the data set; without it a model of another program is
 * ST_USAGE. */
enum status eval_one(struct saved_run *s, bool named, struct eval_figures *ret, struct arena *a);
/* The models among the words: what is neither an option nor an override. */
int eval_models(int argc, char *const *argv);
/* Evaluates each model of the words with the overrides among them, and prints a table, as JSON if
 * wanted. A model that cannot be opened or does not fit has a row without figures, and a warning
 * with the reason; if there is none that can, that is the failure. */
enum status eval_several(int argc, char *const *argv, bool best, bool json);

#endif
