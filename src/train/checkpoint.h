/* checkpoint.h - the state of a run, in the folder ckpt/ITER of its run directory.
 *
 * The folder holds the weights and moments as safetensors, state.json with the lengths and SHA-256
 * of these files, and DONE with the SHA-256 of state.json; docs/FORMATS.md describes each field.
 * The folder is written under a temporary name and renamed, so killing the run at any time leaves
 * older checkpoints intact. A checkpoint is used only if all checksums match.
 *
 * ST_FORMAT: the checkpoint is damaged, since a file is missing or its digest or format is wrong.
 * Any other error: the system could not read a file, so the checkpoint may be intact. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "base/lock.h"
#include "data/safetensors.h"
#include "engine/weights.h"

/* Besides its tensors, a run needs only these values to resume exactly. */
struct checkpoint_state {
    int64_t iter; /* number of updates done */
    int64_t seed;
    double best_val_loss;                /* +infinity: never evaluated */
    int64_t best_iter;                   /* iteration of the best loss; -1: never evaluated */
    int64_t train_batches, eval_batches; /* indices of the next batches */
    const char *config;                  /* the resolved configuration as text */
    const char *run;                     /* identity of the run; NULL: unknown */
};

/* The inode, size and change time of the files of the checkpoint that this process wrote last.
 * While they stay the same, the files count as intact and are not read again before older
 * checkpoints are removed. A zeroed struct stands for no checkpoint. */
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
/* The iterations that have a folder in ckpt, complete or not, newest first. */
enum status checkpoint_iters(const char *run, struct arena *a, int64_t **ret_iters, int *ret_count);

/* Writes ckpt/ITER into the locked run directory, then removes all other checkpoints except the
 * previous and the best one, including later iterations from before the run was resumed. A
 * checkpoint that cannot be read is kept, with a warning. If the save fails (the disk is full, or
 * lock_check finds that the directory was moved), all existing checkpoints are kept. `written`
 * describes the previous save on entry, and this save on return. */
enum status checkpoint_save(const struct lock *run, const struct weights_tensor *tensors, int count,
                            const struct checkpoint_state *state,
                            struct checkpoint_written *written);

/* Removes old checkpoints, like checkpoint_save of iteration `now`. `written` may be NULL. */
void checkpoint_prune(const char *run, int64_t now, const struct checkpoint_written *written,
                      struct arena *a);
/* Removes the temporary folders of writers and removers that were killed. Needs the claim. */
void checkpoint_clean(const char *run, struct arena *a);

/* Finds the newest intact checkpoint, or with `best` the intact one with the lowest validation
 * loss; all files are verified. Warns of each checkpoint that it skips because it is damaged or the
 * disk cannot read it. ST_OK with *ret_found false: there are none (for `best`: none was
 * evaluated). ST_FORMAT: all are damaged. Any other status: ckpt or a newer checkpoint cannot be
 * read for a reason that the user can fix. */
enum status checkpoint_find(const char *run, bool best, struct arena *a, struct checkpoint *ret,
                            bool *ret_found);
/* Opens the checkpoint in the folder `path` and verifies its files. */
enum status checkpoint_open(const char *path, struct arena *a, struct checkpoint *ret);

/* Fills the tensors. ST_FORMAT if a name or a shape differs; the message names the first tensor. */
enum status checkpoint_load(const struct checkpoint *c, const struct weights_tensor *tensors,
                            int count);

#endif
