/* weights.h - weights and optimizer state of an engine: initialized, or as tensors on the host. */
#ifndef ENGINE_WEIGHTS_H
#define ENGINE_WEIGHTS_H

#include "engine/optimizer.h"

struct engine;

enum { WEIGHTS_RANK_MAX = 4 };

/* A parameter in host memory, as source or destination. */
struct weights_tensor {
    const char *name; /* Hugging Face's name in GPT-2: "h.0.attn.c_attn.weight" */
    int rank;
    int64_t dim[WEIGHTS_RANK_MAX];
    float *weight;
    /* Optimizer state, named as the parameter plus the suffix; data NULL: not saved or loaded. */
    struct {
        const char *suffix;
        float *data;
    } state[OPTIMIZER_STATES];
};

/* Generates random initial weights and zeroes the optimizer state. */
enum status weights_init(struct engine *e);
/* One row per parameter. Rows point into the engine's memory if the host can access it, else into
 * copies that weights_fetch and weights_bring synchronize. State: NULL without GRAPH_UPDATE. */
struct weights_tensor *weights_tensors(const struct engine *e, struct arena *a);
/* Whether an engine has its shards of the weights, or of a state of the optimizer, alone
 * (shards.h): rows point into a host copy of the whole at rank 0, and are NULL at the others. */
bool weights_in_shards(const struct engine *e, enum storage s);
/* Copies this rank's shard of bucket k to its place in `bucket`, which holds the whole bucket, or
 * from there. */
enum status weights_fetch_shard(const struct engine *e, enum storage s, int64_t k, float *bucket);
enum status weights_bring_shard(const struct engine *e, enum storage s, int64_t k,
                                const float *bucket);
/* Copies from the device, but for what is in shards. Call before reading the rows. A model without
 * parameters has no rows, and `tensors` is not read. */
enum status weights_fetch(const struct engine *e, const struct weights_tensor *tensors);
/* Copies to the device; rebuilds what is derived from the weights. Call after writing the rows. */
enum status weights_bring(struct engine *e, const struct weights_tensor *tensors);

#endif
