/* weights.h - the parameters and moments of an engine: drawn anew, or as tensors in host memory. */
#ifndef ENGINE_WEIGHTS_H
#define ENGINE_WEIGHTS_H

#include "base/arena.h"

struct engine;

enum { WEIGHTS_RANK_MAX = 4 };

/* A parameter in host memory, to be written out or filled. */
struct weights_tensor {
    const char *name; /* as Hugging Face's GPT-2 has it: "h.0.attn.c_attn.weight" */
    int rank;
    int64_t dim[WEIGHTS_RANK_MAX];
    float *weight, *moment1, *moment2; /* moments NULL: not kept, not loaded */
};

/* Draws initial weights; moments become zero. */
enum status weights_draw(struct engine *e);
/* A row for each parameter, pointing into the engine's own memory where the host can read it, else into a copy that the
 * next two functions bring up to date; moments are NULL where the engine has no GRAPH_UPDATE. */
struct weights_tensor *weights_tensors(const struct engine *e, struct arena *a);
/* Before the rows are read: from the device. */
enum status weights_fetch(const struct engine *e, const struct weights_tensor *tensors);
/* After they were written: to the device, and into what is derived from the weights. */
enum status weights_bring(struct engine *e, const struct weights_tensor *tensors);

#endif
