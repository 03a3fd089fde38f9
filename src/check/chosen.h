/* chosen.h - which kernels a backend takes for a float type, as a planner would. */
#ifndef CHECK_CHOSEN_H
#define CHECK_CHOSEN_H

#include "graph/op.h"

struct backend;

struct chosen {
    const char *variant;
    int operators;
};

enum { CHOSEN_MOST = 32 };

/* The best row for the first case of `op` (check/cases.h) that has tensors of `dtype`; NULL: none, or no such
 * case. */
const char *chosen_variant(const struct backend *b, enum op op, enum dtype dtype);
/* The same of all operators, by variant, those with most operators first; returns how many variants. */
int chosen_variants(const struct backend *b, enum dtype dtype,
                    struct chosen ret_chosen[CHOSEN_MOST]);

/* The float type in which training is fastest: DT_BF16 where the processor multiplies it faster than fp32 and the
 * library that does so is there; else DT_F32. */
enum dtype chosen_fastest(const struct backend *b);

#endif
