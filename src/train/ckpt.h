/* ckpt.h - the folder ckpt of a run: which checkpoints are in it, and which are removed. Used by
 * checkpoint.c and rundir.c alone. */
#ifndef TRAIN_CKPT_H
#define TRAIN_CKPT_H

#include "data/safetensors.h"
#include "train/checkpoint.h"

enum { CKPT_NAME = 64 };

/* "ckpt/000500"; padded so that `ls` shows the folders in order. */
void ckpt_name(char ret[CKPT_NAME], int64_t iter);
/* Iterations that have a folder, complete or not, newest first; none if ckpt does not exist. */
enum status ckpt_iters(const struct dir *run, struct arena *a, int64_t **ret_iters, int *ret_count);
/* Reads a checkpoint; `verify_tensors`: also verifies the tensor files, not only the state. What
 * fails with an error that may pass is tried again. */
enum status ckpt_read(const struct dir *run, int64_t iter, bool verify_tensors, struct arena *a,
                      struct checkpoint *ret);
/* The same of the checkpoint that c->at and c->name lead to. */
enum status ckpt_read_folder(struct checkpoint *c, bool verify_tensors, struct arena *a);
/* Removes what is not needed beside checkpoint `now`, which must be complete. `written`: what this
 * process wrote before; NULL: nothing. */
void ckpt_prune(const struct dir *run, int64_t now, const struct checkpoint_written *written,
                struct arena *a);
/* Notes the files of a checkpoint that was just written, with their digests. */
void ckpt_note_written(const struct dir *run, int64_t iter, const struct safetensors_facts *files,
                       struct checkpoint_written *ret, struct arena *a);
/* Removes the temporary folders of writers and removers that were killed. Needs the claim. */
void ckpt_clean(const struct dir *run);

#endif
