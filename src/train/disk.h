/* disk.h - a forecast of the bytes that a run will write, as there is one of its memory. */
#ifndef TRAIN_DISK_H
#define TRAIN_DISK_H

#include "train/trainer.h"

/* Sets t->disk_words. ST_FULL: the run needs more than the free space of the file system and the
 * space of the checkpoints that it replaces. Call it when the tensors of `t` are known, before
 * anything of an older run is removed. */
enum status disk_check(struct trainer *t);

#endif
