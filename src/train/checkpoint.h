/* checkpoint.h - the state of a run in a separate folder, ckpt/ITER in the run directory.
 *
 * The folder holds the weights and moments as safetensors, state.json with the lengths and SHA-256
 * of these files, and DONE with the SHA-256 of state.json; docs/FORMATS.md describes each field.
 * The folder is written under a temporary name and renamed, so killing the run at any time leaves
 * older checkpoints intact. A checkpoint is used only if all checksums match. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "base/arena.h"
#include "engine/weights.h"

/* What a run needs besides its tensors to resume exactly; all else follows from these. */
struct checkpoint_state {
    int64_t iter; /* updates done, which is the index of the next one */
    int64_t seed;
    double best_val_loss;                /* +infinity: never evaluated */
    int64_t best_iter;                   /* iteration of the best loss; -1: never evaluated */
    int64_t train_batches, eval_batches; /* indices of the next batches */
    const char *config;                  /* the resolved configuration as text */
};

struct checkpoint {
    char path[1024];
    struct checkpoint_state state; /* its strings live in the arena */
};

/* Writes run_dir/ckpt/ITER, then removes all but the previous and the best one, also later
 * iterations from before the run was resumed. On a full disk ST_IO; the existing ones are kept. */
enum status checkpoint_save(const char *run_dir, const struct weights_tensor *tensors, int count,
                            const struct checkpoint_state *state);

/* The newest intact checkpoint, or that with the lowest validation loss, all files verified; warns
 * of each newer one that is corrupt. False if there is none. */
bool checkpoint_find(const char *run_dir, bool best, struct arena *a, struct checkpoint *ret);
/* The checkpoint in the folder `path`, also verified; ST_FORMAT or ST_IO if it is corrupt. */
enum status checkpoint_open(const char *path, struct arena *a, struct checkpoint *ret);
/* True if there is any checkpoint, intact or not. */
bool checkpoint_exists(const char *run_dir);

/* Fills the tensors. ST_FORMAT names the first whose name or shape differs in the file. */
enum status checkpoint_load(const struct checkpoint *c, const struct weights_tensor *tensors,
                            int count);

#endif
