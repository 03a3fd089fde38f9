#include "base/rng.h"

#include <math.h>

struct rng_words rng_block(uint32_t seed, enum rng_stream stream, struct rng_words counter)
{
    uint32_t k0 = seed, k1 = (uint32_t)stream;
    uint32_t *c = counter.w;
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k0, (uint32_t)p1,
                            (uint32_t)(p0 >> 32) ^ c[3] ^ k1, (uint32_t)p0};
        for (int i = 0; i < 4; i++) c[i] = next[i];
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return counter;
}

static struct rng_words block_of(uint32_t seed, enum rng_stream stream, uint32_t sequence,
                                 uint64_t block)
{
    struct rng_words counter = {{(uint32_t)block, (uint32_t)(block >> 32), sequence, 0}};
    return rng_block(seed, stream, counter);
}

float rng_uniform(uint32_t seed, enum rng_stream stream, uint32_t sequence, uint64_t i)
{
    struct rng_words r = block_of(seed, stream, sequence, i / 4);
    return (float)(r.w[i % 4] >> 8) * 0x1p-24f;
}

static float normal_of(const struct rng_words *r, int second)
{
    uint32_t a = r->w[2 * second], b = r->w[2 * second + 1];
    double u = ((double)a + 0.5) * 0x1p-32, v = ((double)b + 0.5) * 0x1p-32;
    return (float)(sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v));
}

float rng_normal(uint32_t seed, enum rng_stream stream, uint32_t sequence, uint64_t i)
{
    struct rng_words r = block_of(seed, stream, sequence, i / 2);
    return normal_of(&r, (int)(i % 2));
}

void rng_normals(uint32_t seed, enum rng_stream stream, uint32_t sequence, uint64_t i, int64_t n,
                 float *ret)
{
    struct rng_words r = {0};
    for (int64_t k = 0; k < n; k++) {
        uint64_t number = i + (uint64_t)k;
        if (k == 0 || number % 2 == 0) r = block_of(seed, stream, sequence, number / 2);
        ret[k] = normal_of(&r, (int)(number % 2));
    }
}

int64_t rng_below(uint32_t seed, enum rng_stream stream, uint32_t sequence, uint64_t i, int64_t n)
{
    BUG_IF(n <= 0, "random number below %lld", (long long)n);
    struct rng_words r = block_of(seed, stream, sequence, i);
    uint64_t bits = (uint64_t)r.w[1] << 32 | r.w[0];
    return (int64_t)(((unsigned __int128)bits * (uint64_t)n) >> 64);
}

struct rng_words dropout_pointwise(uint32_t seed, uint32_t site, uint32_t step, uint64_t call)
{
    struct rng_words counter = {{(uint32_t)call, (uint32_t)(call >> 32), site, step}};
    return rng_block(seed, RNG_DROPOUT, counter);
}

struct rng_words dropout_attention(uint32_t seed, uint32_t site, uint32_t step, uint32_t bh,
                                   uint32_t q16, uint32_t k16, uint32_t a, uint32_t b)
{
    struct rng_words counter = {{q16 << 18 | k16 << 4 | a << 2 | b, bh, site, step}};
    return rng_block(seed, RNG_DROPOUT, counter);
}

uint8_t dropout_attention_byte(uint32_t seed, uint32_t site, uint32_t step, uint32_t bh, uint32_t q,
                               uint32_t k)
{
    uint32_t q_in = q % 16, k_in = k % 16;
    struct rng_words r =
        dropout_attention(seed, site, step, bh, q / 16, k / 16, q_in % 8 / 2, k_in % 8 / 2);
    uint32_t word = q_in / 8 * 2 + q_in % 2, byte = k_in / 8 * 2 + k_in % 2;
    return (uint8_t)(r.w[word] >> (8 * byte));
}
