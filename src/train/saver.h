/* saver.h - writes a checkpoint on a thread of its own, while the next steps run.
 *
 * The tensors must not change until saver_wait: on a GPU they are copies on the host, which only
 * the next save fills again. At most one checkpoint is being written. saver_wait says whether it is
 * there: the caller needs to know before the next save, a stop, an error's message, and the end of
 * the run. The thread takes no signals. */
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

/* Begins to write a checkpoint, as checkpoint_save does. All that is passed must stay valid until
 * saver_wait. Where no thread can be started, the checkpoint is written before it returns. */
void saver_start(struct saver *s, const struct lock *run, const struct weights_tensor *tensors,
                 int count, const struct checkpoint_state *state,
                 struct checkpoint_written *written);
/* Whether a checkpoint was written, or failed, that saver_wait has not reported yet. */
bool saver_done(const struct saver *s);
/* Waits for the checkpoint that is being written and returns its status, with its message.
 * *ret_iter: its iteration; -1: there was none, which is ST_OK. */
enum status saver_wait(struct saver *s, int64_t *ret_iter);

#endif
