/* fuse.h - what the matchers of the pass `fuse` share; private to pass/. */
#ifndef PASS_FUSE_H
#define PASS_FUSE_H

#include "pass/pass.h"

struct fuse {
    const struct graph *in;
    struct graph *out;
    value *map; /* of each old value */
    int *uses;  /* of each old value: how many inputs it is */
    value step; /* the input `step` in `out`, once it was met */
};

/* fuse_update.c: the operators of the update graph act on whole ranges. */
bool fuse_sum_squares(struct fuse *f, int id);
bool fuse_adamw(struct fuse *f, int id);

#endif
