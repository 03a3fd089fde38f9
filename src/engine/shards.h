/* shards.h - which parameters a rank updates, and where it keeps their optimizer state.
 *
 * The parameter range is divided into buckets, and each bucket into one shard per rank (Rajbhandari
 * et al., "ZeRO", SC 2020, section 5). With zero=1 (P_os) all buckets except the last have the same
 * size; a rank stores only the optimizer state of its shards, contiguously. With zero=3 (P_os+g+p)
 * the buckets are the units of the model (model_cut), and weights and gradients are stored like the
 * state. */
#ifndef ENGINE_SHARDS_H
#define ENGINE_SHARDS_H

#include "config/config.h"
#include "model/model.h"

/* A part of the parameter range, in elements. `state`: the offset of the part in the shards that
 * this rank stores; only shard_of_bucket sets it. */
struct shard_part {
    int64_t first, elements, state;
};

/* Whether the optimizer state is sharded over the ranks. */
bool shards_state(const struct config *c);
/* Whether the weights and gradients are sharded, too. */
bool shards_weights(const struct config *c);
/* Whether the ranks sum gradients in bf16, in STORAGE_REDUCED. */
bool shards_reduce_bf16(const struct config *c);
/* With zero < 3: elements of each bucket except the last. */
int64_t shard_bucket_elements(const struct config *c);
/* The number of buckets of a range. */
int64_t shard_buckets(const struct config *c, const struct model *m);
/* Bucket k, and the part of it that this rank updates, which may have no elements. */
struct shard_part shard_bucket(const struct config *c, const struct model *m, int64_t k);
struct shard_part shard_of_bucket(const struct config *c, const struct model *m, int64_t k);
/* The number of elements of the largest bucket. */
int64_t shard_longest(const struct config *c, const struct model *m);
/* Elements of all shards of this rank. */
int64_t shard_state_elements(const struct config *c, const struct model *m);

/* Host memory in addition to the engine's, for gathering shards into checkpoints: one bucket, and
 * on rank 0 a copy of all sharded tensors; 0 without shards. `states`: how many tensors of
 * optimizer state a parameter has (AdamW: 2). */
int64_t shard_host_bytes(const struct config *c, const struct model *m, int states);

#endif
