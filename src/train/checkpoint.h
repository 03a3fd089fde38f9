/* checkpoint.h - the state of a run in a separate folder, ckpt/ITER in the run directory.
 *
 * The folder holds the weights and moments as safetensors, state.json with the lengths and SHA-256
 * of these files, and DONE with the SHA-256 of state.json; docs/FORMATS.md describes each field.
 * The folder is written under a temporary name and renamed, so killing the run at any time leaves
 * older checkpoints intact. A checkpoint is used only if all checksums match.
 *
 * Two things can be wrong with a checkpoint. It is damaged (ST_FORMAT): a file is missing, or was
 * read and its digest or format is wrong. Or it cannot be read (any other status): the system gives
 * an error, and the checkpoint may be good. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "base/lock.h"
#include "data/safetensors.h"
#include "engine/weights.h"

/* What a run needs besides its tensors to resume exactly; all else follows from these. */
struct checkpoint_state {
    int64_t iter; /* updates done, which is the index of the next one */
    int64_t seed;
    double best_val_loss;                /* +infinity: never evaluated */
    int64_t best_iter;                   /* iteration of the best loss; -1: never evaluated */
    int64_t train_batches, eval_batches; /* indices of the next batches */
    const char *config;                  /* the resolved configuration as text */
    const char *run;                     /* identity of the run; NULL: unknown */
};

/* How the system showed the files of the checkpoint that this process wrote last. While they look
 * the same, they are not read again before an older checkpoint is removed. A zeroed struct knows of
 * none. */
struct checkpoint_written {
    int64_t iter;
    struct {
        int64_t inode, bytes, changed_ns; /* inode 0: unknown */
    } file[4];
};

struct checkpoint {
    const char *path;              /* RUN/ckpt/ITER */
    struct checkpoint_state state; /* its strings live in the arena */
};

/* "RUN/ckpt/000500"; padded so that `ls` shows the folders in order. */
const char *checkpoint_path(const char *run, int64_t iter, struct arena *a);
/* Iterations that have a folder, complete or not, newest first; none if ckpt does not exist. */
enum status checkpoint_iters(const char *run, struct arena *a, int64_t **ret_iters, int *ret_count);

/* Writes ckpt/ITER into the run directory that is locked, then removes all but the previous and the
 * best one, also later iterations from before the run was resumed. Only a checkpoint that was read
 * is removed; one that cannot be read is kept, with a warning. If it fails, on a full disk, say, or
 * because the directory was moved (lock_check), the existing ones are kept. `written`: of the save
 * before, and then of this one. */
enum status checkpoint_save(const struct lock *run, const struct weights_tensor *tensors, int count,
                            const struct checkpoint_state *state,
                            struct checkpoint_written *written);

/* What checkpoint_save does after it has written `now`, for a process that was killed before, which
 * left no `written` (NULL). */
void checkpoint_prune(const char *run, int64_t now, const struct checkpoint_written *written,
                      struct arena *a);
/* Removes the temporary folders of writers and removers that were killed. Needs the claim. */
void checkpoint_clean(const char *run, struct arena *a);

/* The newest intact checkpoint, or that with the lowest validation loss, all files verified. Warns
 * of each newer one that is damaged, or that the disk cannot read. ST_OK without one: there are
 * none (for `best`: none that was evaluated). ST_FORMAT: all are damaged. Any other status: ckpt or
 * a newer checkpoint cannot be read for a reason that the user can mend. */
enum status checkpoint_find(const char *run, bool best, struct arena *a, struct checkpoint *ret,
                            bool *ret_found);
/* The checkpoint in the folder `path`, also verified. */
enum status checkpoint_open(const char *path, struct arena *a, struct checkpoint *ret);

/* Fills the tensors. ST_FORMAT names the first whose name or shape differs in the file. */
enum status checkpoint_load(const struct checkpoint *c, const struct weights_tensor *tensors,
                            int count);

#endif
