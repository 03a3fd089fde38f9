/* plan_facts.h - numbers of a training step that follow from its plans, before any step runs:
 * plan.json (docs/FORMATS.md), written and read by one table. NAN: the file lacks them. */
#ifndef RESULT_PLAN_FACTS_H
#define RESULT_PLAN_FACTS_H

#include "base/hash.h"
#include "base/record.h"

struct facts {
    double parameters;        /* counted as in nanoGPT: without positions */
    double parameters_all;    /* with them */
    double sequences, tokens; /* of a step, all micro-steps together */
    double kernels;           /* of a step */
    double flops, bytes;      /* of a step */
    /* Bytes of memory; `copies`: bf16 copies of weights, packed weights, float8's amax history. */
    double weights, gradients, optimizer, copies, inputs, activations, total;
    /* SHA-256 of all that the plans of a step tell: operators, attributes, kernels, types,
     * addresses, how often they run. Equal: the same work, whatever the keys are. Empty: unknown */
    char work[HASH_HEX];
    /* Not in the file. */
    const char *unit;  /* what `tokens` counts: "tokens", "elements" */
    double magnitudes; /* amax history, part of `copies` */
    double random;     /* random inputs of a model that is only timed, part of `inputs` */
};

extern const struct record *const facts_record, *const facts_memory_record;

#endif
