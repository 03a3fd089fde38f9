/* kernel.h - everything a kernel sees: one call, which is planned once and run in every step. */
#ifndef BACKEND_KERNEL_H
#define BACKEND_KERNEL_H

#include "graph/op.h"

struct communicator;
struct target;
struct tuning;
struct tuning_lookups;

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
    struct tuning_lookups *lookups;
};

struct kernel {
    enum op op;
    const char *variant; /* "ref", "avx512", "onednn" */
    /* The types that the kernel accepts, as letters of types_are; NULL: only `fits` decides. */
    const char *in, *out;
    enum dtype act;
    bool (*fits)(const struct kernel_call *); /* reads types and attributes only; NULL: always */
    /* The first argument is this row. NULL: no scratch, nothing to prepare. */
    int64_t (*scratch_bytes)(const struct kernel *, const struct kernel_call *);
    enum status (*prepare)(const struct kernel *, struct kernel_call *); /* once, when planning */
    void (*release)(struct kernel_call *);                               /* undoes prepare */
    enum status (*run)(const struct kernel_call *);
};

/* True if the types of the inputs match the letters `in`, and those of the outputs `out`. Letter a
 * is `act`; if act is DT_COUNT, every a is f32 or every a is bf16. f is f32, b is bf16, i is int32
 * and 8 is an 8-bit float type. A call may have fewer tensors: the last letters are optional. */
bool types_are(const struct kernel_call *c, enum dtype act, const char *in, const char *out);
/* True if kernel k accepts the types and attributes of the call. */
bool kernel_fits(const struct kernel *k, const struct kernel_call *c);

#endif
