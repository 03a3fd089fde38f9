/* saver.h - writes a checkpoint in a separate thread while the next steps run.
 *
 * The tensors must not change until saver_wait: on a GPU they are host copies, which only the next
 * save overwrites. At most one checkpoint is written at a time. Call saver_wait, which reports
 * whether the write succeeded, before the next save, before stopping, before an error message that
 * mentions the checkpoint, and at the end of the run. The thread receives no signals. */
#ifndef TRAIN_SAVER_H
#define TRAIN_SAVER_H

#include "train/checkpoint.h"

#include <pthread.h>

struct saver {
    /* private to saver.c */
    bool busy; /* there is a thread to join */
    _Atomic bool done;
    pthread_t thread;
    const struct lock *run;
    const struct weights_tensor *tensors;
    int count;
    struct checkpoint_state state;
    struct checkpoint_written *written;
    enum status st;
    struct failure why;
};

/* Starts writing a checkpoint (checkpoint_save). All arguments must stay valid until saver_wait. If
 * no thread can be started, the checkpoint is written before saver_start returns. */
void saver_start(struct saver *s, const struct lock *run, const struct weights_tensor *tensors,
                 int count, const struct checkpoint_state *state,
                 struct checkpoint_written *written);
/* Whether a write has ended, successfully or not, that saver_wait has not reported yet. */
bool saver_done(const struct saver *s);
/* Waits for the checkpoint that is being written; returns its status and sets its error message.
 * *ret_iter: its iteration; -1, with ST_OK, if no write was pending. */
enum status saver_wait(struct saver *s, int64_t *ret_iter);

#endif
