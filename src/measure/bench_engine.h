/* bench_engine.h - the engine of a cell of bench_cells.h, and one step of its lines; private to measure/. */
#ifndef MEASURE_BENCH_ENGINE_H
#define MEASURE_BENCH_ENGINE_H

#include "bench/bench_cells.h"

struct bench_engine;

/* The graphs that lines take, a mask. */
unsigned bench_kinds(unsigned lines);
/* The configuration must outlive it. */
enum status bench_engine_open(struct bench_engine **ret, const struct config *c, int64_t vocab,
                              unsigned lines);
void bench_engine_close(struct bench_engine *b);
/* Runs each of its lines once and leaves how many milliseconds each took. */
enum status bench_engine_step(struct bench_engine *b, double ret_ms[BENCH_LINES]);
/* Of the last of them that makes one: a step, else forward and backward, else inference; 0: none does. */
double bench_engine_loss(const struct bench_engine *b);

#endif
