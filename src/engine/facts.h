/* facts.h - numbers of a training step that follow from its plans, before any step runs. */
#ifndef ENGINE_FACTS_H
#define ENGINE_FACTS_H

#include "base/hash.h"
#include "engine/program.h"

#include <jansson.h>

struct str;

struct facts {
    int64_t parameters;        /* counted as in nanoGPT: without positions */
    int64_t parameters_all;    /* with them */
    const char *unit;          /* what `tokens` counts: "tokens", "elements" */
    int64_t sequences, tokens; /* of a step, all micro-steps together */
    int64_t kernels;           /* of a step */
    double flops, bytes;       /* of a step */
    /* Bytes of memory; `copies`: bf16 copies of weights, packed weights, float8's amax history. */
    int64_t weights, gradients, optimizer, copies, inputs, activations, total;
    /* SHA-256 of all that the plans of a step tell: operators, attributes, kernels, types,
     * addresses, how often they run. Equal: the same work, whatever the keys are. */
    char work[HASH_HEX];
    int64_t magnitudes; /* amax history, part of `copies` */
    int64_t random;     /* random inputs of a model that is only timed, part of `inputs` */
};

/* How often a rank's training step runs a graph of this kind. */
int64_t runs_per_step(const struct config *c, enum graph_kind kind);
/* `program` has the plans of training. */
struct facts facts_of(const struct program *program);
/* Prints a few lines of text. */
void facts_print(const struct facts *f, struct str *s);
/* The memory fields as an object with the same names. */
json_t *facts_memory(const struct facts *f);
/* plan.json (docs/FORMATS.md). The caller releases it with json_decref. */
json_t *facts_json(const struct facts *f);

#endif
