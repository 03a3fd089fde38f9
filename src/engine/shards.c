#include "engine/shards.h"

#include "backend/communicator.h"

bool shards_state(const struct config *c)
{
    return c->ranks.zero > 0 && c->ranks.count > 1;
}

bool shards_weights(const struct config *c)
{
    return c->ranks.zero == 3 && c->ranks.count > 1;
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

int64_t shard_buckets(const struct config *c, const struct model *m)
{
    return m->units ? m->units : ceil_div(m->elements, shard_bucket_elements(c));
}

struct shard_part shard_bucket(const struct config *c, const struct model *m, int64_t k)
{
    if (m->units) return (struct shard_part){m->unit[k], m->unit[k + 1] - m->unit[k], 0};
    int64_t size = shard_bucket_elements(c), first = k * size;
    return (struct shard_part){.first = first, .elements = min_i64(size, m->elements - first)};
}

struct shard_part shard_of_bucket(const struct config *c, const struct model *m, int64_t k)
{
    int ranks = (int)c->ranks.count, rank = (int)c->ranks.rank;
    struct shard_part bucket = shard_bucket(c, m, k);
    struct group_shard s = group_shard(bucket.elements, ranks, rank);
    int64_t state = 0;
    if (m->units) { /* all shards of a unit have the same size */
        state = bucket.first / ranks;
    } else if (k) { /* all earlier buckets have the same size */
        struct group_shard before = group_shard(shard_bucket_elements(c), ranks, rank);
        state = k * (before.end - before.first);
    }
    return (struct shard_part){bucket.first + s.first, s.end - s.first, state};
}

int64_t shard_longest(const struct config *c, const struct model *m)
{
    int64_t longest = 0;
    for (int64_t k = 0; k < shard_buckets(c, m); k++)
        longest = max_i64(longest, shard_bucket(c, m, k).elements);
    return longest;
}

int64_t shard_state_elements(const struct config *c, const struct model *m)
{
    struct shard_part s = shard_of_bucket(c, m, shard_buckets(c, m) - 1);
    return s.state + s.elements;
}

int64_t shard_host_bytes(const struct config *c, const struct model *m, int states)
{
    if (!shards_state(c)) return 0;
    int64_t ranges = c->ranks.rank ? 0 : states + shards_weights(c);
    return (shard_longest(c, m) + ranges * m->elements) * (int64_t)sizeof(float);
}
