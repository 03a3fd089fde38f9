#include "train/saver.h"

#include "base/threads.h"

static void *write_checkpoint(void *user)
{
    struct saver *s = user;
    s->st = checkpoint_save(s->run, s->tensors, s->count, &s->state, s->written);
    if (s->st != ST_OK) fail_keep(&s->why);
    s->done = true;
    return NULL;
}

void saver_start(struct saver *s, const struct lock *run, const struct weights_tensor *tensors,
                 int count, const struct checkpoint_state *state,
                 struct checkpoint_written *written)
{
    BUG_IF(s->busy, "two checkpoints at once");
    s->run = run;
    s->tensors = tensors;
    s->count = count;
    s->state = *state;
    s->written = written;
    s->busy = true;
    s->done = false;
    if (threads_start(&s->thread, write_checkpoint, s)) return;
    write_checkpoint(s);
    s->thread = pthread_self();
}

bool saver_done(const struct saver *s)
{
    return s->busy && s->done;
}

enum status saver_wait(struct saver *s, int64_t *ret_iter)
{
    *ret_iter = -1;
    if (!s->busy) return ST_OK;
    if (!pthread_equal(s->thread, pthread_self())) pthread_join(s->thread, NULL);
    s->busy = false;
    *ret_iter = s->state.iter;
    if (s->st != ST_OK) fail_restore(&s->why);
    return s->st;
}
