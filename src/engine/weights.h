/* weights.h - weights and optimizer state of an engine: initialization, copies on the host. */
#ifndef ENGINE_WEIGHTS_H
#define ENGINE_WEIGHTS_H

#include "engine/optimizer.h"

struct engine;

enum { WEIGHTS_RANK_MAX = 4 };

/* A parameter in host memory, as source or destination. */
struct weights_tensor {
    const char *name; /* as in Hugging Face's GPT-2: "h.0.attn.c_attn.weight" */
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
/* One tensor per parameter. Tensors point into the engine's memory if the host can access it, else
 * into copies that weights_fetch and weights_bring synchronize. No state without GRAPH_UPDATE. */
struct weights_tensor *weights_tensors(const struct engine *e, struct arena *a);
/* Whether an engine stores only its shards of the weights or of an optimizer state (shards.h). Then
 * `weight` or `data` points into a complete host copy on rank 0, and is NULL on the other ranks. */
bool weights_in_shards(const struct engine *e, enum storage s);
/* Copies this rank's shard of bucket k to or from its place in `bucket`, which has all shards. */
enum status weights_fetch_shard(const struct engine *e, enum storage s, int64_t k, float *bucket);
enum status weights_bring_shard(const struct engine *e, enum storage s, int64_t k,
                                const float *bucket);
/* Copies the unsharded tensors from the device. Call it before reading them. A model without
 * parameters has no tensors, and `tensors` is not read. */
enum status weights_fetch(const struct engine *e, const struct weights_tensor *tensors);
/* Copies the unsharded tensors to the device and rebuilds the copies of copies.h. */
enum status weights_bring(struct engine *e, const struct weights_tensor *tensors);

#endif
