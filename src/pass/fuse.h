/* fuse.h - what the matchers of the pass `fuse` share; private to pass/. */
#ifndef PASS_FUSE_H
#define PASS_FUSE_H

#include "pass/pass.h"

struct fuse {
    const struct pass_options *options;
    const struct graph *in;
    struct graph *out;
    value *map; /* of each old value */
    int *uses;  /* of each old value: how many inputs it is */
    value
        *slope; /* of each old value x: the derivative of gelu(x) in `out`, if GELU_BOTH made it */
    value *dropped; /* of each old value that LAYERNORM_GRAD_DROP made: its output */
    value step;     /* the input `step` in `out`, once it was met */
};

/* True if no output of `n`, a node of `in`, is used after it and before node `id`. */
bool fuse_quiet(const struct fuse *f, const struct node *n, int id);
/* The producer of `v` if it is such an operator and `v` has no other use; else NULL. */
const struct node *fuse_only_for(const struct fuse *f, value v, enum op op);

/* fuse_product.c: products and what stands beside them, where kernels gain by it. */
bool fuse_linear_gelu(struct fuse *f, int id);
bool fuse_matmul_gelu_grad(struct fuse *f, int id);
bool fuse_quantise(struct fuse *f, int id);
bool fuse_quantise_norm(struct fuse *f, int id);
bool fuse_matmul_sum(struct fuse *f, int id);

/* fuse_update.c: the operators of the update graph act on whole ranges. */
bool fuse_sum_squares(struct fuse *f, int id);
bool fuse_update(struct fuse *f, int id);
/* Drops the store of a parameter's bf16 copy where the one update writes it. */
bool fuse_update_copy(struct fuse *f, int id);

#endif
