/* forecast.h - of cells on a CPU, before anything runs: the batch that fits, and the time of their
 * steps. Both come from plans; nothing is measured. */
#ifndef BENCH_FORECAST_H
#define BENCH_FORECAST_H

#include "bench/bench_cells.h"
#include "machine/machine.h"

/* Finds the lines of a cell that fit in `room` bytes (-1: unknown, no limit): all, or those without
 * an update, or inference, or none. With `lower`, batch_size is lowered as far as the first of
 * these needs it, down to one sequence. */
enum status forecast_fit(struct bench_cell *c, int64_t room, bool lower, unsigned *ret_lines);

/* Peaks of a processor that was not measured, from its clock, its vectors and the current number of
 * threads: one FMA per cycle, and 8 GB/s per thread. False: its clock is unknown. */
bool forecast_guess(struct machine *ret);

/* Milliseconds that steps of these lines take on an otherwise idle machine, warm-up included: twice
 * the time of the FLOPs of all kernels at the peak of their type, and of their bytes at copy
 * bandwidth. */
enum status forecast_ms(const struct bench_cell *c, unsigned lines, const struct machine *m,
                        double *ret_ms);

#endif
