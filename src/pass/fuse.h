/* fuse.h - state and helpers that the matchers of the pass `fuse` share; private to pass/. */
#ifndef PASS_FUSE_H
#define PASS_FUSE_H

#include "pass/pass.h"

struct fuse {
    const struct pass_options *options;
    const struct graph *in;
    struct graph *out;
    value *map; /* per value of `in`: its value in `out` */
    int *uses;  /* per value of `in`: number of uses as an input */
    /* per value x of `in`: the derivative of gelu(x) in `out`, if GELU_BOTH produced it */
    value *slope;
    /* per output of a DROPOUT of `in`: its value in `out`, if LAYERNORM_GRAD_DROP produced it */
    value *dropped;
    value step; /* the input `step` in `out`, after its leaf was copied */
};

static inline value mapped(const struct fuse *f, value old)
{
    return f->map[old.i];
}
/* True if no output of `n`, a node of `in`, is used between `n` and node `id`. */
bool fuse_unused_between(const struct fuse *f, const struct node *n, int id);
/* The producer of `v` if its operator is `op` and `v` has exactly one use; else NULL. */
const struct node *fuse_sole_use(const struct fuse *f, value v, enum op op);

/* fuse_matmul.c: fuses matmuls with neighboring operators if a fused kernel is faster. */
bool fuse_linear_gelu(struct fuse *f, int id);
bool fuse_matmul_gelu_grad(struct fuse *f, int id);
bool fuse_quantize(struct fuse *f, int id);
bool fuse_quantize_norm(struct fuse *f, int id);
bool fuse_matmul_sum(struct fuse *f, int id);

/* fuse_update.c: operators of the update graph, applied to whole ranges. */
bool fuse_sum_squares(struct fuse *f, int id);
bool fuse_update(struct fuse *f, int id);
/* Drops the STORE of a parameter's bf16 copy if the fused update writes the copy. */
bool fuse_update_copy(struct fuse *f, int id);

#endif
