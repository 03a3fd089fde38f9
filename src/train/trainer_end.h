/* trainer_end.h - private to trainer.c: the summary and the samples at the end of a training. */
#ifndef TRAIN_TRAINER_END_H
#define TRAIN_TRAINER_END_H

#include "train/trainer.h"

/* Model FLOPs utilization of steps that take `ms`; NAN: the peak is unknown. */
double trainer_mfu(const struct trainer *t, double ms);
/* Fills the summary from the times of the steps and the telemetry. */
void trainer_summarize(struct trainer *t);
/* Adds the wall time so far to the summary and to the log; call it last before writing the summary.
 * A log that cannot be written is a warning. */
void trainer_summarize_wall(struct trainer *t);
enum status trainer_write_samples(struct trainer *t);
/* If `st` is an error, returns `st` and keeps its message. */
enum status trainer_write_summary(const struct trainer *t, enum status st);

#endif
