/* formula_run.h - checks and times a formula of tensors (formula_graph.h) in two variants: one
 * kernel for each operator, and fused kernels by the pass and the generator that training uses.
 *
 * Values and gradients are compared with double precision, computed from the formula's tree, at odd
 * sizes and at the size that is timed. The variants and a copy of as many bytes are timed in turns.
 * Calls cycle through sets of tensors that together should be at least twice as large as the last
 * cache (formula_run.cold). */
#ifndef LAB_FORMULA_RUN_H
#define LAB_FORMULA_RUN_H

#include "backend/backend.h"
#include "base/judge.h"
#include "lab/formula_graph.h"
#include "measure/rounds.h"

struct str;

enum formula_variant { FORMULA_SEPARATE, FORMULA_FUSED, FORMULA_VARIANTS };
enum formula_pass { FORMULA_FORWARD, FORMULA_BOTH, FORMULA_PASSES };
/* "separate", "fused"; "forward", "forward + backward" */
const char *formula_variant_name(enum formula_variant v);
const char *formula_pass_name(enum formula_pass p);

struct formula_options {
    const struct formula *formula;
    const double *values; /* of the formula's names; values of tensors are not read */
    struct device device;
    enum dtype dtype;
    int64_t n;       /* elements of a tensor */
    int samples;     /* of each variant */
    bool go_on;      /* sample on while the order is uncertain (rounds.h) */
    double limit_ms; /* for the timing of all variants together */
    void (*each)(void *user, double share, const char *what);
    void *user;
};

struct formula_result {
    int kernels;  /* number of kernels that run */
    double moved; /* bytes that the kernels read and write, per element */
    double error; /* relative to double precision, by norm: the largest of values and gradients */
    double allowed;
    const char *wrong; /* where the result is wrong; NULL: it is right */
    struct contender time;
    struct judgement beside; /* in the fused variant: compared with the separate one */
};

struct formula_run {
    const struct formula_options *options;
    struct formula_uses uses;
    int passes;                    /* 1 (FORMULA_FORWARD) if there is no gradient, else 2 */
    double useful[FORMULA_PASSES]; /* bytes per element of the tensors and results */
    struct formula_result result[FORMULA_PASSES][FORMULA_VARIANTS];
    struct contender copy[FORMULA_PASSES]; /* a copy that moves the useful bytes */
    int sets;
    bool cold;       /* all sets together are twice as large as the last cache */
    double unjudged; /* share of elements that are not checked: not finite, or close to a jump */
    int wrong;       /* number of wrong results */
};

/* Checks and times a formula. ST_INTERRUPTED: Ctrl-C came before every variant had a sample. */
enum status formula_run(const struct formula_options *o, struct formula_run *ret, struct arena *a);

/* Appends the fused kernels: on a GPU the generated source of each kernel or, with `ptx`, its PTX;
 * on a CPU the steps of each chain. */
enum status formula_show(const struct formula_options *o, bool ptx, struct str *s);

#endif
