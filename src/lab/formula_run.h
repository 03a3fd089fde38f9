/* formula_run.h - checks and times a formula of tensors (formula_graph.h): one kernel for each
 * operator, beside fused kernels by the pass and the generator that training uses.
 *
 * Values and gradients are compared with double precision, computed from the formula's tree, at odd
 * sizes and at the size that is timed, on poisoned outputs. Variants and a copy of as many bytes
 * are timed in turns, on as many sets of tensors as exceed twice the last cache. */
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
    const double *values; /* of its names; those of the tensors are not read */
    struct device device;
    enum dtype dtype;
    int64_t n;       /* elements of a tensor */
    int samples;     /* of each variant */
    bool go_on;      /* more, while the order is uncertain (rounds.h) */
    double limit_ms; /* for the timing of all variants together */
    void (*each)(void *user, double share, const char *what);
    void *user;
};

struct formula_result {
    int kernels;  /* that run */
    double moved; /* bytes that they read and write, per element */
    double error; /* relative to double precision, by norm: the largest of values and gradients */
    double allowed;
    const char *wrong; /* where the result is wrong; NULL: it is right */
    struct contender time;
    struct judgement beside; /* of the fused variant, beside the separate one */
};

struct formula_run {
    const struct formula_options *options;
    struct formula_uses uses;
    int passes;                    /* FORMULA_FORWARD alone if there is no gradient */
    double useful[FORMULA_PASSES]; /* bytes per element that must move: tensors and results */
    struct formula_result result[FORMULA_PASSES][FORMULA_VARIANTS];
    struct contender copy[FORMULA_PASSES]; /* of as many bytes as are useful */
    int sets;
    bool cold;       /* all sets together are twice as large as the last cache */
    double unjudged; /* share of the elements without a finite value, or too close to a jump */
    int wrong;       /* results */
};

/* ST_INTERRUPTED if Ctrl-C ended it before every variant had a sample. */
enum status formula_run(const struct formula_options *o, struct formula_run *ret, struct arena *a);

/* What is fused: on a GPU the generated source of each kernel, or with `ptx` what the compiler
 * makes of it; on a CPU the steps of each chain. */
enum status formula_show(const struct formula_options *o, bool ptx, struct str *s);

#endif
