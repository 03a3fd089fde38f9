/* fit.h - the largest micro-batch whose training fits into so much memory, found by compiling. */
#ifndef ENGINE_FIT_H
#define ENGINE_FIT_H

#include "engine/program.h"

/* Compiles `kinds` with one batch_size after the other. `ret` is 0 if not even one sequence fits. */
enum status fit_batch(const struct config *c, int64_t vocab, unsigned kinds,
                      const struct target *target, const struct tuning *tuning, int64_t bytes,
                      int64_t *ret);

#endif
