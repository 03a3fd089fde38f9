/* facts.h - what the plans say about a training step before the first one is run. */
#ifndef ENGINE_FACTS_H
#define ENGINE_FACTS_H

#include "engine/program.h"

#include <jansson.h>

struct str;

struct facts {
    int64_t parameters;        /* as nanoGPT counts: without positions */
    int64_t parameters_all;    /* with them */
    const char *unit;          /* what `tokens` counts: "tokens", "elements" */
    int64_t sequences, tokens; /* of a step, all micro-steps together */
    int64_t kernels;           /* of a step */
    double flops, bytes;       /* of a step */
    /* bytes of memory; copies: of the weights, in bf16 and packed, and float8's largest magnitudes */
    int64_t weights, gradients, optimizer, copies, inputs, activations, total;
    int64_t magnitudes; /* of the copies */
    int64_t drawn;      /* of the inputs: what a model that is only timed works on */
};

/* Of a program with the plans of training. */
struct facts facts_of(const struct program *program);
/* A few lines for people. */
void facts_print(const struct facts *f, struct str *s);
/* The last of them as an object, named alike. */
json_t *facts_memory(const struct facts *f);
/* plan.json; docs/FORMATS.md has it field by field. */
/* The caller releases it with json_decref. */
json_t *facts_json(const struct facts *f);
void facts_print_json(const struct facts *f, struct str *s);

#endif
