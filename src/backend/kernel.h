/* kernel.h - all that a kernel sees: one call, planned once and run every step. */
#ifndef BACKEND_KERNEL_H
#define BACKEND_KERNEL_H

#include "graph/op.h"

struct kernel_call {
    const union attr *attr;
    struct numerics numerics;
    int n_in, n_out;
    struct type in_type[MAX_IN], out_type[MAX_OUT];
    void *in[MAX_IN], *out[MAX_OUT]; /* set when the plan is bound; never NULL while running */
    void *scratch;                   /* kernel->scratch_bytes, 64-byte aligned, undefined content */
    void *state;                     /* what prepare made: a primitive, a function handle */
    void *context;                   /* of the backend that runs it */
};

struct kernel {
    enum op op;
    const char *variant;                      /* "ref", "avx512", "onednn" */
    bool (*fits)(const struct kernel_call *); /* types and attributes only; NULL: always */
    /* These two are given the row itself. NULL: none, nothing to do. */
    int64_t (*scratch_bytes)(const struct kernel *, const struct kernel_call *);
    enum status (*prepare)(const struct kernel *, struct kernel_call *); /* once, when planned */
    void (*release)(struct kernel_call *);                               /* undoes prepare */
    enum status (*run)(const struct kernel_call *);
};

#endif
