/* forecast.h - predicts, for cells on a CPU, the batch that fits and the time of steps. Both are
 * computed from plans; nothing runs. */
#ifndef BENCH_FORECAST_H
#define BENCH_FORECAST_H

#include "bench/bench_cells.h"
#include "machine/machine.h"

/* Finds the lines of a cell that fit in `memory_limit` bytes (-1: unknown, no limit): all lines,
 * the lines without an update, inference, or none. With `lower`, tries smaller and smaller batch
 * sizes, down to 1, for all lines; if none fits, again from the original size for the lines without
 * an update, then for inference. */
enum status forecast_fit(struct bench_cell *c, int64_t memory_limit, bool lower,
                         unsigned *ret_lines);

/* Estimates the peaks of a processor from its clock, its vector width and the current number of
 * threads: one vector FMA per cycle, and 8 GB/s per thread. False: the clock is unknown. */
bool forecast_guess(struct machine *ret);

/* Predicts the milliseconds of all steps of these lines, warm-up included, on an otherwise idle
 * machine. The time of a kernel is twice (measured, see forecast.c) the sum of two times: of its
 * FLOPs at the peak of their type, and of its bytes at copy bandwidth. */
enum status forecast_ms(const struct bench_cell *c, unsigned lines, const struct machine *m,
                        double *ret_ms);

#endif
