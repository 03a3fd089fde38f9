/* fit.h - the largest micro-batch whose training fits in a given amount of memory. */
#ifndef ENGINE_FIT_H
#define ENGINE_FIT_H

#include "engine/program.h"

/* Compiles `kinds` for several batch sizes. *ret is 0 if not even one sequence fits in `bytes`. */
enum status fit_batch(const struct config *c, int64_t vocab, unsigned kinds,
                      const struct target *target, const struct tuning *tuning, int64_t bytes,
                      int64_t *ret);

#endif
