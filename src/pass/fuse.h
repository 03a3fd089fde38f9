/* fuse.h - what the matchers of the pass `fuse` share; private to pass/. */
#ifndef PASS_FUSE_H
#define PASS_FUSE_H

#include "pass/pass.h"

struct fuse {
    const struct graph *in;
    struct graph *out;
    value *map; /* of each old value */
    int *uses;  /* of each old value: how many inputs it is */
    value
        *slope; /* of each old value x: the derivative of gelu(x) in `out`, if GELU_BOTH made it */
    value step; /* the input `step` in `out`, once it was met */
};

/* fuse_update.c: the operators of the update graph act on whole ranges. */
bool fuse_sum_squares(struct fuse *f, int id);
bool fuse_adamw(struct fuse *f, int id);
/* Swallows the store of a parameter's bf16 copy that the one AdamW writes on its way. */
bool fuse_adamw_copy(struct fuse *f, int id);

#endif
