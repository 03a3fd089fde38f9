/* suites.h - declares the suites, which are defined in a C file each and listed in list.c; those
 * that are one grid are declared in grid.h. */
#ifndef SUITE_SUITES_H
#define SUITE_SUITES_H

#include "suite/suite.h"

/* Peak memory of inference, of a step and of its forward pass, what a block saves, and the
 * effect of recomputation; computed from plans, without a device. */
enum status suite_run_memory(const struct suite_request *r, struct sheet *ret, struct arena *a);
/* Attention alone: `block_size` is the length and `n_embd` the head size. */
enum status suite_run_attention(const struct suite_request *r, struct sheet *ret, struct arena *a);
enum status suite_run_flash(const struct suite_request *r, struct sheet *ret, struct arena *a);
/* Where the time of a step goes, by size and length; softmax compared with its matmuls. */
enum status suite_run_profile(const struct suite_request *r, struct sheet *ret, struct arena *a);
/* The kernels of one attention block, unfused and flash. */
enum status suite_run_block(const struct suite_request *r, struct sheet *ret, struct arena *a);
/* The grid of cs336-e2e after 0, 1, 2 and 5 warm-up steps, each in a separate process. */
enum status suite_run_warmup(const struct suite_request *r, struct sheet *ret, struct arena *a);
/* Refuses overrides of keys that the ladder sets. */
enum status suite_check_ladder(const struct config *c, char *const *word, int words);
enum status suite_run_ladder(const struct suite_request *r, struct sheet *ret, struct arena *a);
/* Compares two trainings, with unfused and flash attention; the runs stay in out_dir. */
enum status suite_run_nanogpt(const struct suite_request *r, struct sheet *ret, struct arena *a);

#endif
