/* disk.h - a forecast of the bytes that a run will write, as there is one of its memory. */
#ifndef TRAIN_DISK_H
#define TRAIN_DISK_H

#include "train/trainer.h"

struct disk_need {
    int64_t checkpoint; /* bytes of one */
    int64_t kept;  /* how many exist at most at the same time, the one being written included */
    int64_t log;   /* bytes of the other files of the run, estimated */
    int64_t total; /* all of these */
    int64_t free;  /* bytes of that file system, with those of checkpoints that go; -1: unknown */
};
/* After the tensors of `t` are known, before anything of an older run is removed. */
enum status disk_forecast(const struct trainer *t, struct disk_need *ret);
/* ST_IO if the file system has less than that. */
enum status disk_check(const struct disk_need *n, const char *out_dir);
void disk_print(const struct disk_need *n, struct str *s);

#endif
