/* evaluator.h - the loss on both splits of a data set, estimated on random batches.
 *
 * Batch k of the estimate at an iteration is a function of (seed, iteration, k) alone, so
 * evaluating more often changes neither other estimates nor the training. */
#ifndef TRAIN_EVALUATOR_H
#define TRAIN_EVALUATOR_H

#include "train/batch.h"

struct evaluator {
    struct sequence sequence; /* of GRAPH_EVAL */
    struct loader loader[SPLIT_COUNT];
    struct batch batch;
    int64_t batches; /* per split */
    struct plan_hooks hooks;
    /* Of the last evaluator_run with a vocabulary: the targets of each split, and the bytes of the
     * text that they stand for; negative: unknown. */
    const struct vocabulary *vocabulary; /* set it to count; NULL: nothing is counted */
    int64_t targets[SPLIT_COUNT], text_bytes[SPLIT_COUNT];
};

/* Borrows the engine, which has GRAPH_EVAL, and the data set; `hooks` may be NULL. */
enum status evaluator_init(struct evaluator *v, struct engine *e, const struct dataset *d,
                           const struct plan_hooks *hooks, struct arena *a);
/* Before the engine is closed. */
void evaluator_close(struct evaluator *v);
/* The mean loss of each split. ST_INTERRUPTED after Ctrl-C; ST_NUMERIC: a loss is not finite. */
enum status evaluator_run(struct evaluator *v, int64_t iter, double ret_loss[SPLIT_COUNT]);

#endif
