/* ranks.h - records what several ranks do in the measured steps; private to profile/, but for
 * profile_ranks_new and profile_ranks_watch (profile.h). */
#ifndef PROFILE_RANKS_H
#define PROFILE_RANKS_H

#include "profile/collect.h"

/* Allocates `steps` measured steps; rank 0 runs the steps of `e`. */
void ranks_begin(struct profile_ranks *r, const struct engine *e, const struct random_step *n,
                 int steps, struct arena *a);
/* Around measured step `step` of rank 0: the other ranks record it, too. */
void ranks_before(struct profile_ranks *r, struct random_step *n, int step);
void ranks_after(struct profile_ranks *r, struct random_step *n);
/* Sets p->communication from the first p->steps steps; `c` has the kernels of rank 0. */
void ranks_take(const struct profile_ranks *r, const struct collected *c, struct profile *p,
                struct arena *a);

#endif
