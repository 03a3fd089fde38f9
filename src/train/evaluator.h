/* evaluator.h - the loss on both splits of a data set, estimated on random batches.
 *
 * Batch k of the estimate at an iteration is a function of (seed, iteration, k) alone, so
 * evaluating more often changes neither other estimates nor the training. */
#ifndef TRAIN_EVALUATOR_H
#define TRAIN_EVALUATOR_H

#include "train/batch.h"

/* The ranks exchange their losses after each round; a rank computes this many batches per round. */
enum { EVALUATOR_ROUND = 8 };

struct evaluator {
    struct sequence sequence; /* of GRAPH_EVAL */
    struct loader loader[SPLIT_COUNT];
    struct batch batch;
    int64_t batches; /* per split */
    int64_t iter;    /* the iteration of this evaluation; determines the batches */
    struct plan_hooks hooks;
    /* If `vocabulary` is set, evaluator_run counts the targets of each split and the bytes of the
     * text that they stand for; negative: unknown. */
    const struct vocabulary *vocabulary;
    int64_t targets[SPLIT_COUNT], text_bytes[SPLIT_COUNT];
};

/* Borrows the engine, which has GRAPH_EVAL, and the data set; `hooks` may be NULL. */
enum status evaluator_init(struct evaluator *v, struct engine *e, const struct dataset *d,
                           const struct plan_hooks *hooks, struct arena *a);
/* Call it before the engine is closed. */
void evaluator_close(struct evaluator *v);
/* With several ranks: computes this rank's batches of the round that begins at batch `first`,
 * counted over both splits, and gathers the losses of all ranks, EVALUATOR_ROUND from each. Rank 0
 * calls evaluator_run, whose ORDER_EVALUATE makes the other ranks call this function. */
enum status evaluator_join(struct evaluator *v, int64_t iter, int64_t first, float *ret_loss);
/* The mean loss of each split. ST_INTERRUPTED after Ctrl-C; ST_NUMERIC: a loss is not finite. */
enum status evaluator_run(struct evaluator *v, int64_t iter, double ret_loss[SPLIT_COUNT]);

#endif
