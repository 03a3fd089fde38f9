/* checkpoint.h - the state of a run in a separate folder, ckpt/ITER in the run directory.
 *
 * The folder holds the weights and moments as safetensors, state.json with the lengths and SHA-256
 * of these files, and DONE with the SHA-256 of state.json; docs/FORMATS.md describes each field.
 * The folder is written under a temporary name and renamed, so killing the run at any time leaves
 * older checkpoints intact. A checkpoint is used only if all checksums match. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "base/arena.h"

enum { CHECKPOINT_RANK_MAX = 4 };

/* A parameter in host memory, as source or destination. Moments that are NULL are neither saved nor
 * loaded. */
struct checkpoint_tensor {
    const char *name; /* Hugging Face's name in GPT-2: "h.0.attn.c_attn.weight" */
    int rank;
    int64_t dim[CHECKPOINT_RANK_MAX];
    float *weight, *moment1, *moment2;
};

/* The state besides the tensors that a run needs to continue as if it had not stopped; everything
 * else is a function of the seed and these numbers. */
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

/* Writes run_dir/ckpt/ITER. Then removes all other checkpoints except the previous one and the best
 * one, including those of later iterations, which belong to an abandoned continuation of the run.
 * On a full disk: ST_IO, and existing checkpoints are kept. */
enum status checkpoint_save(const char *run_dir, const struct checkpoint_tensor *tensors, int count,
                            const struct checkpoint_state *state);

/* The newest intact checkpoint, with all files verified; logs a warning for each newer one that is
 * corrupt. False if there is none. */
bool checkpoint_find_last(const char *run_dir, struct arena *a, struct checkpoint *ret);
/* The same for the checkpoint with the lowest validation loss. */
bool checkpoint_find_best(const char *run_dir, struct arena *a, struct checkpoint *ret);
/* The checkpoint in the folder `path`, also verified; ST_FORMAT or ST_IO if it is corrupt. */
enum status checkpoint_open(const char *path, struct arena *a, struct checkpoint *ret);
/* True if there is any checkpoint, intact or not. */
bool checkpoint_exists(const char *run_dir);

/* Fills the tensors. The file must contain exactly these names and shapes; otherwise ST_FORMAT,
 * with the first difference in the message. */
enum status checkpoint_load(const struct checkpoint *c, const struct checkpoint_tensor *tensors,
                            int count);

#endif
