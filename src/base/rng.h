/* rng.h - counter-based random numbers: a number depends on its index, not on the order of calls.
 *
 * Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A number
 * is a pure function of the seed, the stream and four counter words. All threads, backends and
 * tilings therefore get the same numbers, and streams do not affect each other. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include "base/base.h"

/* One stream per use, so that evaluation does not change the random numbers of training. */
enum rng_stream {
    RNG_INIT = 1,
    RNG_TRAIN_BATCH,
    RNG_DROPOUT,
    RNG_EVAL_BATCH,
    RNG_SAMPLE,
    RNG_TEST,
    RNG_VERDICT,
    RNG_DOCUMENT
};

struct rng_words {
    uint32_t w[4];
};

/* The block of four words at `counter` under the key {seed, stream}. */
struct rng_words rng_block(uint32_t seed, enum rng_stream stream, struct rng_words counter);

/* Number `i` of a sequence: uniform in [0, 1) with 24 bits, from 32 random bits. */
float rng_uniform(uint32_t seed, enum rng_stream stream, uint32_t sequence, uint64_t i);
/* Number `i` of a sequence: standard normal (Box-Muller on two words of block i/2). */
float rng_normal(uint32_t seed, enum rng_stream stream, uint32_t sequence, uint64_t i);
/* Numbers i ... i + n - 1 of a normal sequence; computes each block once. */
void rng_normals(uint32_t seed, enum rng_stream stream, uint32_t sequence, uint64_t i, int64_t n,
                 float *ret);
/* Number `i` of a sequence: uniform in 0 ... n-1, n > 0 (64 random bits scaled by n). */
int64_t rng_below(uint32_t seed, enum rng_stream stream, uint32_t sequence, uint64_t i, int64_t n);

/* Dropout keeps an element if its byte is >= the threshold round(256 p), and multiplies it by
 * 256 / (256 - threshold): unbiased, with p rounded to a multiple of 1/256. */
static inline int dropout_threshold(double p)
{
    return (int)(256.0 * p + 0.5);
}
static inline float dropout_scale(int threshold)
{
    return 256.0f / (float)(256 - threshold);
}

/* 16 random bytes for dropout number `site` of a model: element i uses byte i%16 of call i/16. */
struct rng_words dropout_pointwise(uint32_t seed, uint32_t site, uint32_t step, uint64_t call);
/* The 16 bytes of one 4x4 set of elements of the attention matrix of head `bh` = b*H+h: inside the
 * 16x16 block (q16, k16), rows {2a,2a+1,2a+8,2a+9} x columns {2b,2b+1,2b+8,2b+9}, a, b = 0..3. Word
 * i belongs to the i-th row; its byte j (least significant first) to the j-th column. */
struct rng_words dropout_attention(uint32_t seed, uint32_t site, uint32_t step, uint32_t bh,
                                   uint32_t q16, uint32_t k16, uint32_t a, uint32_t b);
/* The byte of one element of an attention matrix, from dropout_attention: slow but simple. */
uint8_t dropout_attention_byte(uint32_t seed, uint32_t site, uint32_t step, uint32_t bh, uint32_t q,
                               uint32_t k);

#endif
