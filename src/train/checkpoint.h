/* checkpoint.h - the state of a run in a folder of its own, ckpt/ITER below the run directory.
 *
 * The folder holds the weights and moments as safetensors, state.json with their lengths and SHA-256,
 * and DONE with the SHA-256 of state.json; docs/FORMATS.md has it field by field. It is written under a
 * temporary name and renamed, so a run killed at any instant leaves the older ones as they were. A
 * checkpoint counts only if everything in it is what was written. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "base/arena.h"

enum { CHECKPOINT_RANK_MAX = 4, CHECKPOINT_STATES = 2 };

/* A parameter in host memory, or the place to load one to. */
struct checkpoint_tensor {
    const char *name; /* as Hugging Face's GPT-2 has it: "h.0.attn.c_attn.weight" */
    int rank;
    int64_t dim[CHECKPOINT_RANK_MAX];
    float *weight;
    /* The optimizer's state. Its name is the parameter's with the suffix; data NULL: not kept, not loaded. */
    struct {
        const char *suffix;
        float *data;
    } state[CHECKPOINT_STATES];
};

/* What a run needs besides its tensors to go on as if it had never stopped: all else is a function of
 * the seed and of these numbers. */
struct checkpoint_state {
    int64_t iter; /* updates done, so the number of the next one */
    int64_t seed;
    double best_val_loss;                /* +infinity: never evaluated */
    int64_t best_iter;                   /* of the best loss; -1: never evaluated */
    int64_t train_batches, eval_batches; /* numbers of the next batches */
    const char *config;                  /* the resolved configuration as text */
};

struct checkpoint {
    char path[1024];
    struct checkpoint_state state; /* its text lives in the arena */
};

/* Writes run_dir/ckpt/ITER; then removes the others but the one before it and the best one, and those of
 * a later iteration, which belong to a past that this run has left. A full disk: ST_IO, and nothing that
 * was there is lost. */
enum status checkpoint_save(const char *run_dir, const struct checkpoint_tensor *tensors, int count,
                            const struct checkpoint_state *state);

/* The newest checkpoint that is whole, read and compared byte by byte; a warning names what is broken in
 * each newer one. False: there is none. */
bool checkpoint_find_last(const char *run_dir, struct arena *a, struct checkpoint *ret);
/* The same for the one with the lowest validation loss. */
bool checkpoint_find_best(const char *run_dir, struct arena *a, struct checkpoint *ret);
/* The one in the folder `path`, compared as well: what is broken is ST_FORMAT or ST_IO. */
enum status checkpoint_open(const char *path, struct arena *a, struct checkpoint *ret);
/* True if there is any, whole or not: the run directory is not a fresh one. */
bool checkpoint_exists(const char *run_dir);

/* Fills the tensors. The file must have exactly these names and shapes; otherwise ST_FORMAT, which
 * names the first that differs. */
enum status checkpoint_load(const struct checkpoint *c, const struct checkpoint_tensor *tensors,
                            int count);

#endif
