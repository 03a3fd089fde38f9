/* state_file.h - state.json and DONE of a checkpoint; docs/FORMATS.md describes each field. */
#ifndef TRAIN_STATE_FILE_H
#define TRAIN_STATE_FILE_H

#include "data/safetensors.h"
#include "train/checkpoint.h"

enum { STATE_VERSION = 1, STATE_MODEL = 0, STATE_OPTIMIZER, STATE_FILE_COUNT };

/* "model.safetensors" or "optimizer.safetensors". */
const char *state_tensor_file(int i);

/* Writes state.json, then DONE, into a folder. */
enum status state_write(const char *folder, const struct checkpoint_state *state,
                        const struct safetensors_facts files[STATE_FILE_COUNT]);
/* Reads both files and checks state.json against DONE; ST_FORMAT if one is damaged or missing,
 * another status if one cannot be read. */
enum status state_read(const char *folder, struct arena *a, struct checkpoint_state *ret_state,
                       struct safetensors_facts ret_files[STATE_FILE_COUNT]);
/* Passes on the status of opening a file of a checkpoint; a missing file becomes ST_FORMAT. */
enum status state_part(enum status st, const char *path);

#endif
