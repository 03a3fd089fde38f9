/* ranks.h - the ranks of a training: rank 0, which leads, and the others, which follow.
 *
 * Rank 0 is the trainer: it alone has the run directory, the log, the checkpoints and the terminal.
 * Before anything that all ranks do together it tells the others by an order. Every rank has an
 * engine of its own, with the same plans, and the same weights bit for bit. */
#ifndef TRAIN_RANKS_H
#define TRAIN_RANKS_H

#include "config/config.h"
#include "engine/crew.h"
#include "engine/weights.h"

struct communicator;
struct learner;

enum order {
    ORDER_BEGIN,    /* of processes: open an engine for the configuration that follows */
    ORDER_START,    /* learner_start of iteration `iter` */
    ORDER_FINISH,   /* learner_finish of it */
    ORDER_EVALUATE, /* evaluator_join from batch `first` on */
    ORDER_WEIGHTS,  /* take the weights and the optimizer's state of rank 0 */
    ORDER_SAMPLE,   /* generate the samples of the training, to gather its weights */
    ORDER_STATE,    /* give rank 0 what is in shards */
};

/* What must be the same at all processes. */
struct ranks_program {
    const char *build;   /* "0.4.0 1a2b3c4d release" */
    const char *command; /* the words of the command line */
};

/* Of a process that MPI started. Rank 0 gets its communicator, for ranks_open; the others follow
 * its orders until it ends and do not return. Without MPI r->communicator is NULL. crew_close ends
 * them. */
enum status ranks_join(struct crew *r, const struct ranks_program *p);
/* Sets the number of ranks to that of MPI's processes; ST_USAGE: the user `asked` for another. */
enum status ranks_count(const struct crew *r, struct config *c, bool asked);
/* Opens the engines of the other ranks, in threads unless MPI joined them. `c` must outlive
 * them. */
enum status ranks_open(struct crew *r, const struct config *c);
/* After rank 0 has opened its own: the data and the instruction set are the same everywhere. */
enum status ranks_agree(struct crew *r, const struct learner *l);
/* weights_bring at all ranks, of what rank 0 has in `tensors`. */
enum status ranks_bring_weights(const struct crew *r, struct engine *e,
                                const struct weights_tensor *tensors);
/* Before rank 0 calls sampler_write_text: if the ranks share the weights, all generate the same
 * text. */
enum status ranks_sample(const struct crew *r, const struct learner *l);
/* weights_fetch at rank 0, with what the ranks share. */
enum status ranks_fetch_weights(const struct crew *r, const struct engine *e,
                                const struct weights_tensor *tensors);

#endif
