/* facts.h - derives the numbers of a training step (result/plan_facts.h) from its plans. */
#ifndef ENGINE_FACTS_H
#define ENGINE_FACTS_H

#include "engine/program.h"
#include "result/plan_facts.h"

#include <jansson.h>

struct str;

/* How often a rank's training step runs a graph of this kind. */
int64_t runs_per_step(const struct config *c, enum graph_kind kind);
/* `program` has the plans of training. */
struct facts facts_of(const struct program *program);
/* Prints a few lines of text. */
void facts_print(const struct facts *f, struct str *s);
/* The contents of plan.json (docs/FORMATS.md). The caller releases it with json_decref. */
json_t *facts_json(const struct facts *f);

#endif
