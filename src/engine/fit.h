/* fit.h - whether a program fits in the free memory, and the largest micro-batch that fits. */
#ifndef ENGINE_FIT_H
#define ENGINE_FIT_H

#include "engine/program.h"

/* The largest batch_size for which the plans of `kinds` fit in `bytes`, found by compiling them for
 * several sizes; 0: not even batch_size=1 fits. */
enum status fit_batch(const struct config *c, int64_t vocab, unsigned kinds,
                      const struct target *target, const struct tuning *tuning, int64_t bytes,
                      int64_t *ret);

/* fit_zero_stage: the ZeRO stage that fit_ranks assumes, 3 if `c` sets it, else 1.
 * fit_ranks: *ret is the smallest number of ranks, at least 2, with which a rank needs at most
 * `bytes`, with as many micro-batches per rank as in `c`; 0 if RANKS_MOST ranks are too few.
 * *ret_least: the bytes that each rank needs with *ret ranks (with RANKS_MOST if *ret is 0); 0 if
 * the device has no collectives. */
int fit_zero_stage(const struct config *c);
enum status fit_ranks(const struct config *c, int64_t vocab, unsigned kinds,
                      const struct target *target, const struct tuning *tuning, int64_t bytes,
                      int64_t *ret, int64_t *ret_least);

/* "batch_size=25 is the largest that fits" in `memory_limit` bytes, "not even batch_size=1 fits",
 * or "try a smaller batch_size" if a plan cannot be compiled. */
const char *fit_words(const struct program *p, unsigned kinds, int64_t memory_limit,
                      struct arena *a);

/* Host memory that the program needs in addition to its storage blocks: for libraries, files and
 * buffers, and with a GPU for host copies of weights and optimizer state. `reserved`: counts
 * reserved addresses instead (free_memory.h), which include the stacks of `threads` threads.
 * `ranks` is the number of ranks in this process; `threads` counts the threads of all of them. */
int64_t fit_host_bytes(const struct program *p, bool reserved, int64_t threads, int64_t ranks);

/* Compares the memory that all `ranks` ranks of this process need with the free memory of the
 * device and of the host. Call it before anything is allocated. ST_UNSUPPORTED: not enough memory;
 * the message states the needed and the free memory, the limit, and the batch size that fits. */
enum status fit_check(const struct program *p, unsigned kinds, int64_t ranks);

#endif
