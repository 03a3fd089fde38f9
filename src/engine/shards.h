/* shards.h - which parameters a rank updates, and where it keeps their optimizer state.
 *
 * The range of the parameters is cut into buckets; of each bucket every rank has a shard
 * (Rajbhandari et al., "ZeRO", SC 2020, section 5). With zero=1 (P_os) buckets are equal; a rank
 * stores the optimizer's state of its shards alone, one behind the other. With zero=3 (P_os+g+p)
 * buckets are the units of the model (model_cut), and a rank stores its shards of weights and
 * gradients in the same way. */
#ifndef ENGINE_SHARDS_H
#define ENGINE_SHARDS_H

#include "config/config.h"
#include "model/model.h"

/* Elements of the range; `state`: where the state of this rank begins for it. */
struct shard_part {
    int64_t first, elements, state;
};

/* Whether the ranks share the optimizer's state. */
bool shards_state(const struct config *c);
/* Whether the ranks split the weights and gradients, too. */
bool shards_weights(const struct config *c);
/* Whether the ranks sum gradients in bf16, in STORAGE_REDUCED. */
bool shards_reduce_bf16(const struct config *c);
/* Elements of each bucket except the last, with zero < 3. */
int64_t shard_bucket_elements(const struct config *c);
/* The number of buckets of a range. */
int64_t shard_buckets(const struct config *c, const struct model *m);
/* Bucket k, and the part of it that this rank updates, which may have no elements. */
struct shard_part shard_bucket(const struct config *c, const struct model *m, int64_t k);
struct shard_part shard_of_bucket(const struct config *c, const struct model *m, int64_t k);
/* Elements of the largest bucket. */
int64_t shard_longest(const struct config *c, const struct model *m);
/* Elements of the state of this rank. */
int64_t shard_state_elements(const struct config *c, const struct model *m);

/* Host memory of this rank beside the engine's, by which shards are gathered for checkpoints: a
 * bucket, and at rank 0 a copy of all; 0 without shards. `states` of the optimizer. */
int64_t shard_host_bytes(const struct config *c, const struct model *m, int states);

#endif
