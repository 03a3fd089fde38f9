/* kernel.h - all that a kernel sees: one call, planned once and run every step. */
#ifndef BACKEND_KERNEL_H
#define BACKEND_KERNEL_H

#include "graph/op.h"

struct target;
struct tuning;
struct tuning_questions;

struct kernel_call {
    const union attr *attr;
    struct numerics numerics;
    int n_in, n_out;
    struct type in_type[MAX_IN], out_type[MAX_OUT];
    void *in[MAX_IN], *out[MAX_OUT]; /* set when the plan is bound; never NULL while running */
    void *scratch;                   /* kernel->scratch_bytes, 64-byte aligned, undefined content */
    void *state;                     /* what prepare made: a primitive, a function handle */
    void *context;                   /* of the backend that runs it; NULL while it is planned */
    const struct target *target;     /* what it is planned for */
    const struct tuning *tuning;     /* what timing decided there; NULL: nothing */
    /* Where questions to the table are noted; NULL: nowhere. */
    struct tuning_questions *questions;
};

struct kernel {
    enum op op;
    const char *variant; /* "ref", "avx512", "onednn" */
    /* Looks at types, attributes, target and tuning alone. NULL: always. */
    bool (*fits)(const struct kernel_call *);
    /* These two are given the row itself. NULL: none, nothing to do. The first is as pure as fits. */
    int64_t (*scratch_bytes)(const struct kernel *, const struct kernel_call *);
    enum status (*prepare)(const struct kernel *, struct kernel_call *); /* once, when bound */
    void (*release)(struct kernel_call *);                               /* undoes prepare */
    enum status (*run)(const struct kernel_call *);
};

#endif
