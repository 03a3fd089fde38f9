/* others.h - suites that are no grid of cells, and none of attention alone. */
#ifndef SUITE_OTHERS_H
#define SUITE_OTHERS_H

#include "suite/suite.h"

/* Peaks of the loss alone, of a step and of its forward pass, what a block saves, and what computing blocks again makes of both; read off plans, with no device. */
enum status suite_run_memory(const struct suite *s, const struct suite_request *r,
                             struct sheet *ret, struct arena *a);
/* Where the time of each part of a step goes, for sizes and lengths; softmax against products inside attention. */
enum status suite_run_profile(const struct suite *s, const struct suite_request *r,
                              struct sheet *ret, struct arena *a);
/* The kernels of one block of attention, slow and flash. */
enum status suite_run_block(const struct suite *s, const struct suite_request *r, struct sheet *ret,
                            struct arena *a);
/* The grid of cs336-e2e after 0, 1, 2 and 5 steps of warm-up, each in a process of its own. */
enum status suite_run_warmup(const struct suite *s, const struct suite_request *r,
                             struct sheet *ret, struct arena *a);
enum status suite_run_ladder(const struct suite *s, const struct suite_request *r,
                             struct sheet *ret, struct arena *a);
/* Two trainings, slow and flash attention, held against each other; they stay in out_dir. */
enum status suite_run_nanogpt(const struct suite *s, const struct suite_request *r,
                              struct sheet *ret, struct arena *a);

#endif
