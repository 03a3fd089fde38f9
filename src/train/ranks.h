/* ranks.h - the ranks of a training: rank 0 leads, the other ranks follow its orders.
 *
 * Rank 0 is the trainer: only rank 0 has the run directory, the log, the checkpoints and the
 * terminal. Before each joint operation, rank 0 sends an order to the other ranks. Every rank has
 * its own engine with the same plans; the weights are bitwise equal. */
#ifndef TRAIN_RANKS_H
#define TRAIN_RANKS_H

#include "config/config.h"
#include "engine/crew.h"
#include "engine/weights.h"

struct communicator;
struct learner;

enum order {
    ORDER_BEGIN,    /* MPI processes only: open an engine for the configuration that follows */
    ORDER_START,    /* learner_start of iteration `iter` */
    ORDER_FINISH,   /* learner_finish of iteration `iter` */
    ORDER_EVALUATE, /* evaluator_join from batch `first` on */
    ORDER_WEIGHTS,  /* receive the weights and the optimizer state from rank 0 */
    ORDER_SAMPLE,   /* take part in generating samples, because the weights are sharded */
    ORDER_STATE,    /* send this rank's shards to rank 0 */
};

/* Call it first in every process. Without MPI, sets r->communicator to NULL. With MPI, rank 0 gets
 * its communicator, for ranks_open; the other ranks follow the orders of rank 0 until its
 * crew_close ends them, and do not return. */
enum status ranks_join(struct crew *r, const struct crew_program *p);
/* Opens the engines of the other ranks, in threads without MPI. `c` must outlive the ranks. */
enum status ranks_open(struct crew *r, const struct config *c);
/* After rank 0 opened its engine: checks that the ranks have the same data and instruction set. */
enum status ranks_agree(struct crew *r, const struct learner *l);
/* Calls weights_bring on all ranks, with the contents of rank 0's `tensors`. */
enum status ranks_bring_weights(const struct crew *r, struct engine *e,
                                const struct weights_tensor *tensors);
/* Call it before sampler_write_text: with sharded weights, all ranks take part in sampling. */
enum status ranks_sample(const struct crew *r, const struct learner *l);
/* weights_fetch on rank 0, after gathering the shards of all ranks. */
enum status ranks_fetch_weights(const struct crew *r, const struct engine *e,
                                const struct weights_tensor *tensors);

#endif
