/* trainer_end.h - what a training writes when it ends: its figures, its wall time, a text. Private
 * to train/trainer.c. */
#ifndef TRAIN_TRAINER_END_H
#define TRAIN_TRAINER_END_H

#include "train/trainer.h"

/* Model FLOPs utilization of steps that take `ms`; NAN: the peak is unknown. */
double trainer_mfu(const struct trainer *t, double ms);
/* Fills the summary from the times of the steps and the telemetry. */
void trainer_summarize(struct trainer *t);
/* The last call before the summary is written: all wall time so far. */
void trainer_summarize_wall(struct trainer *t);
enum status trainer_write_samples(struct trainer *t);
/* Returns `st` if it is an error already; its message is kept. */
enum status trainer_write_summary(const struct trainer *t, enum status st);

#endif
