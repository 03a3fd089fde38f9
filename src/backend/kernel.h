/* kernel.h - everything a kernel sees: one call, which is planned once and run in every step. */
#ifndef BACKEND_KERNEL_H
#define BACKEND_KERNEL_H

#include "graph/op.h"

struct communicator;
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
    void *state;                     /* created by prepare: a primitive, a function handle */
    void *context;                   /* the open device; NULL during planning */
    struct communicator
        *communicator;           /* of the rank; NULL: there is one rank, or during planning */
    const struct target *target; /* the target of the plan */
    const struct tuning *tuning; /* the tuning table; NULL: none */
    /* Records lookups in the table; NULL: they are not recorded. */
    struct tuning_questions *questions;
};

struct kernel {
    enum op op;
    const char *variant; /* "ref", "avx512", "onednn" */
    /* The types that it accepts, as in types_are; NULL: those that `fits` accepts. */
    const char *in, *out;
    enum dtype act;
    bool (*fits)(const struct kernel_call *); /* reads types and attributes only; NULL: always */
    /* These two also receive the row. NULL: no scratch, nothing to prepare. */
    int64_t (*scratch_bytes)(const struct kernel *, const struct kernel_call *);
    enum status (*prepare)(const struct kernel *, struct kernel_call *); /* once, when planning */
    void (*release)(struct kernel_call *);                               /* undoes prepare */
    enum status (*run)(const struct kernel_call *);
};

/* True if the types match, one letter each: a is `act`, or with DT_COUNT f32 or bf16, the same for
 * all; f is f32, b bf16, i int32, 8 an 8-bit type. Surplus letters are optional tensors. */
bool types_are(const struct kernel_call *c, enum dtype act, const char *in, const char *out);
bool kernel_fits(const struct kernel *k, const struct kernel_call *c);

#endif
