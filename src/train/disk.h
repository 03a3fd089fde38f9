/* disk.h - predicts how many bytes a run will write, and checks that the disk has enough space. */
#ifndef TRAIN_DISK_H
#define TRAIN_DISK_H

#include "train/trainer.h"

/* Sets t->disk_words. ST_FULL if the run needs more than the free space plus the checkpoints that
 * it replaces. Call it when the tensors of `t` are known, before an older run is removed. */
enum status disk_check(struct trainer *t);

#endif
