/* chosen.h - the kernels that a backend selects for a float type, as a planner would. */
#ifndef CHECK_CHOSEN_H
#define CHECK_CHOSEN_H

#include "graph/op.h"

struct backend;

struct chosen {
    const char *variant;
    int operators;
};

enum { CHOSEN_MOST = 32 };

/* Lists the chosen variants, and for each the number of operators that use it, the largest number
 * first. Returns the number of variants. */
int chosen_variants(const struct backend *b, enum dtype dtype,
                    struct chosen ret_chosen[CHOSEN_MOST]);

/* The float type in which training is fastest: DT_BF16 if the processor multiplies bf16 faster than
 * fp32 and the library that uses this is available; else DT_F32. */
enum dtype chosen_fastest(const struct backend *b);

#endif
