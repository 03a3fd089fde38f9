/* fit.h - whether a program fits in the memory that is there, and the largest micro-batch that
 * would. */
#ifndef ENGINE_FIT_H
#define ENGINE_FIT_H

#include "engine/program.h"

/* Compiles `kinds` for several batch sizes. *ret is 0 if not even one sequence fits in `bytes`. */
enum status fit_batch(const struct config *c, int64_t vocab, unsigned kinds,
                      const struct target *target, const struct tuning *tuning, int64_t bytes,
                      int64_t *ret);

/* The smallest number of ranks, at least 2, of which each needs at most `bytes` with zero=1 (3, if
 * that is set: fit_ranks_zero) and as many micro-batches as a rank has now; 0: not even RANKS_MOST
 * of them. *ret_least: bytes of a rank with that many, or with RANKS_MOST; 0: the device has no
 * ranks. */
int fit_ranks_zero(const struct config *c);
enum status fit_ranks(const struct config *c, int64_t vocab, unsigned kinds,
                      const struct target *target, const struct tuning *tuning, int64_t bytes,
                      int64_t *ret, int64_t *ret_least);

/* "batch_size=25 is the largest that fits", in `room` bytes; "not even batch_size=1 fits". */
const char *fit_words(const struct program *p, unsigned kinds, int64_t room, struct arena *a);

/* Host memory that running the program takes besides its storage blocks: on a GPU host copies of
 * weights and optimizer state; libraries, files and buffers; where a limit counts reserved
 * addresses (free_memory.h), also the stacks of `threads` threads, those of all `ranks` ranks that
 * are in this process. */
int64_t fit_host_bytes(const struct program *p, bool reserved, int64_t threads, int64_t ranks);

/* Compares what the program needs, at `ranks` ranks of this process together, with the free memory
 * of the device and of the host; to be called before anything is allocated. ST_UNSUPPORTED: the
 * message has what is needed, what is there, by which limit, and the batch size that fits. */
enum status fit_check(const struct program *p, unsigned kinds, int64_t ranks);

#endif
