/* types.h - which types a row takes. */
#ifndef BACKEND_CUDA_TYPES_H
#define BACKEND_CUDA_TYPES_H

#include "backend/kernel.h"

/* A letter for each value: f float, i whole numbers, a of type `act`. Calls with fewer values than letters fit,
 * those with more do not. */
static inline bool types_match(const struct type *t, int n, enum dtype act, const char *letters)
{
    for (int i = 0; i < n; i++) {
        char letter = letters[i];
        if (!letter || t[i].dtype != (letter == 'a' ? act : letter == 'f' ? DT_F32 : DT_I32))
            return false;
    }
    return true;
}

/* With activations of either type. */
static inline bool types_are(const struct kernel_call *c, const char *in, const char *out)
{
    const enum dtype acts[] = {DT_F32, DT_BF16};
    for (int i = 0; i < COUNT_OF(acts); i++)
        if (types_match(c->in_type, c->n_in, acts[i], in) &&
            types_match(c->out_type, c->n_out, acts[i], out))
            return true;
    return false;
}

#endif
