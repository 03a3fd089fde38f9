#include "engine/shards.h"

#include "backend/communicator.h"

bool shards_state(const struct config *c)
{
    return c->ranks.zero > 0 && c->ranks.count > 1;
}

bool shards_reduce_bf16(const struct config *c)
{
    return c->ranks.reduce_dtype == REDUCE_BFLOAT16 && c->ranks.count > 1;
}

int64_t shard_bucket_elements(const struct config *c)
{
    bool flat = c->ranks.overlap == OVERLAP_FLAT;
    return flat ? INT64_MAX / 2 : (c->ranks.bucket_mb << 20) / (int64_t)sizeof(float);
}

int64_t shard_buckets(const struct config *c, int64_t elements)
{
    return ceil_div(elements, shard_bucket_elements(c));
}

struct shard_part shard_bucket(const struct config *c, int64_t elements, int64_t k)
{
    int64_t size = shard_bucket_elements(c), first = k * size;
    return (struct shard_part){.first = first, .elements = min_i64(size, elements - first)};
}

struct shard_part shard_of_bucket(const struct config *c, int64_t elements, int64_t k)
{
    int ranks = (int)c->ranks.count, rank = (int)c->ranks.rank;
    struct shard_part bucket = shard_bucket(c, elements, k);
    struct group_shard s = group_shard(bucket.elements, ranks, rank);
    int64_t state = 0;
    if (k) { /* all buckets before have the same size */
        struct group_shard before = group_shard(shard_bucket_elements(c), ranks, rank);
        state = k * (before.end - before.first);
    }
    return (struct shard_part){bucket.first + s.first, s.end - s.first, state};
}

int64_t shard_state_elements(const struct config *c, int64_t elements)
{
    int64_t last = shard_buckets(c, elements) - 1;
    struct shard_part s = shard_of_bucket(c, elements, last);
    return s.state + s.elements;
}

int64_t shard_host_bytes(const struct config *c, int64_t elements, int states)
{
    if (!shards_state(c)) return 0;
    int64_t bucket = min_i64(shard_bucket_elements(c), elements);
    return (bucket + (c->ranks.rank == 0 ? states * elements : 0)) * (int64_t)sizeof(float);
}
