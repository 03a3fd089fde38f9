/* bench_engine.h - the engine of a cell, and one step of its lines; private to bench/. */
#ifndef BENCH_BENCH_ENGINE_H
#define BENCH_BENCH_ENGINE_H

#include "bench/bench_cells.h"

struct bench_engine;

/* The mask of graphs that the lines need. */
unsigned bench_kinds(const struct config *c, unsigned lines);
/* `c` must outlive the engine. */
enum status bench_engine_open(struct bench_engine **ret, const struct config *c, int64_t vocab,
                              unsigned lines);
void bench_engine_close(struct bench_engine *b);
/* The time for making kernels ready since the engine was opened; 0 if it is not reported. */
void bench_engine_setup(const struct bench_engine *b, struct kernel_setup *ret);
/* Runs each line once and returns the milliseconds of each. */
enum status bench_engine_step(struct bench_engine *b, double ret_ms[BENCH_LINES]);
/* The loss in the last step of the line that bench_line_of_loss chooses; 0: none. */
double bench_engine_loss(const struct bench_engine *b);

#endif
