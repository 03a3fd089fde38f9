/* Philox 4x32-10 for W counters at once; each lane has the words of rng_block for its counter. */
#include "backend/cpu/vector/dropout.h"

#include "base/rng.h"

typedef uint16_t halves __attribute__((vector_size(16)));

struct words {
    vu w[4];
};

/* Selects half s of every 64-bit lane, alternately from the first and the second vector. */
#define HALF(lane, s) (((lane) & ~1) + ((lane)&1) * W + (s))

/* High and low 32 bits of a * m in each lane. */
INLINE void multiply(vu a, uint32_t m, vu *high, vu *low)
{
    vu factor = (vu){0} + m;
    vu64 even = vu_mul_even(a, factor), odd = vu_mul_even((vu)((vu64)a >> 32), factor);
    *low = VEC_PICK((vu)even, (vu)odd, HALF, 0);
    *high = VEC_PICK((vu)even, (vu)odd, HALF, 1);
}

INLINE struct words philox(uint32_t seed, struct words c)
{
    uint32_t k0 = seed, k1 = RNG_DROPOUT;
    for (int round = 0; round < 10; round++) {
        vu high0, low0, high1, low1;
        multiply(c.w[0], 0xD2511F53u, &high0, &low0);
        multiply(c.w[2], 0xCD9E8D57u, &high1, &low1);
        c = (struct words){{high1 ^ c.w[1] ^ k0, low1, high0 ^ c.w[3] ^ k1, low0}};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

INLINE vf factors_of(const uint8_t *byte, int threshold, float scale)
{
    return (vf)((vi_bytes(byte) >= threshold) & (vi)vf_all(scale));
}

/* LANES_OF and PAIRS_OF select lanes s and s + 1 of each 128 bits of two vectors a and b. LANES_OF
 * arranges them as a, b, a, b; PAIRS_OF as a, a, b, b. */
#define LANES_OF(lane, s) (((lane) & ~3) + ((lane)&3) / 2 + ((lane)&1) * W + (s))
#define PAIRS_OF(lane, s) (((lane) & ~3) + ((lane)&1) + ((lane)&2) / 2 * W + (s))

/* Transposes 4 x 4 lanes: in each 128 bits, row j gets lane j of rows 0 to 3. */
INLINE void transpose(vu w[4])
{
    vu a = VEC_PICK(w[0], w[1], LANES_OF, 0), b = VEC_PICK(w[2], w[3], LANES_OF, 0);
    vu c = VEC_PICK(w[0], w[1], LANES_OF, 2), d = VEC_PICK(w[2], w[3], LANES_OF, 2);
    w[0] = VEC_PICK(a, b, PAIRS_OF, 0), w[1] = VEC_PICK(a, b, PAIRS_OF, 2);
    w[2] = VEC_PICK(c, d, PAIRS_OF, 0), w[3] = VEC_PICK(c, d, PAIRS_OF, 2);
}

/* The random bytes of 16 W elements: the results of W calls of a pointwise site's generator, of
 * which `call` is the first. */
INLINE void random_bytes(const struct dropout *d, uint32_t step, int64_t call, uint8_t *bytes)
{
    vu zero = {0}, low = (uint32_t)call + (vu){VEC_LANES}; /* call is a multiple of W: no carry */
    vu high = zero + (uint32_t)(call >> 32);
    struct words r = philox(d->seed, (struct words){{low, high, zero + d->site, zero + step}});
    transpose(r.w);
    uint8_t byte[4][4 * W]; /* the bytes of call 4g+j are byte[j][16g ... 16g+15] */
    memcpy(byte, r.w, sizeof byte);
    for (int i = 0; i < W; i++) memcpy(bytes + i * 16, &byte[i % 4][i / 4 * 16], 16);
}

struct dropout_run VEC(dropout_begin)(const struct dropout *d, uint32_t step)
{
    struct dropout_run run = {.d = d, .step = step, .first = -1, .scale = 1.0f};
    if (d->threshold > 0) run.scale = dropout_scale(d->threshold);
    return run;
}

INLINE void fill_run(struct dropout_run *run)
{
#if defined(__AVX512F__)
    uint8_t bytes[DROPOUT_RUN];
#else
    uint8_t *bytes = run->bytes;
#endif
    for (int at = 0; at < DROPOUT_RUN; at += 16 * W)
        random_bytes(run->d, run->step, (run->first + at) / 16, bytes + at);
#if defined(__AVX512F__)
    for (int at = 0; at < DROPOUT_RUN; at += 64) {
        __m512i random = _mm512_loadu_si512(bytes + at);
        uint64_t kept = _mm512_cmpge_epu8_mask(random, _mm512_set1_epi8((char)run->d->threshold));
        memcpy(run->kept + at / 8, &kept, sizeof kept);
    }
#endif
}

int64_t VEC(dropout_seek)(struct dropout_run *run, int64_t i, int64_t *ret_at)
{
    int64_t first = i / DROPOUT_RUN * DROPOUT_RUN;
    if (run->first != first) {
        run->first = first;
        fill_run(run);
    }
    *ret_at = i - first;
    return first + DROPOUT_RUN - i;
}

void VEC(dropout_words)(uint32_t word[4][16], const struct dropout *d, uint32_t step, int64_t bh,
                        int64_t q16, int64_t k16)
{
    for (int set = 0; set < 16; set += W) {
        vu zero = {0};
        vu low = (uint32_t)(q16 << 18 | k16 << 4 | set) + (vu){VEC_LANES};
        struct words r = philox(
            d->seed, (struct words){{low, zero + (uint32_t)bh, zero + d->site, zero + step}});
        for (int i = 0; i < 4; i++) memcpy(&word[i][set], &r.w[i], sizeof r.w[i]);
    }
}

void VEC(dropout_block)(float *factor, const struct dropout *d, uint32_t step, int64_t bh,
                        int64_t q16, int64_t k16)
{
    const int threshold = d->threshold;
    const float scale = dropout_scale(threshold);
    uint32_t word[4][16];
    VEC(dropout_words)(word, d, step, bh, q16, k16);
    for (int q = 0; q < 16; q++) {
        /* The bytes of row q are in four consecutive words; low halves are columns 0 to 7, high
         * halves 8 to 15. */
        const uint32_t *w = &word[q / 8 * 2 + q % 2][q % 8 / 2 * 4];
        halves h;
        memcpy(&h, w, sizeof h);
        h = __builtin_shufflevector(h, h, 0, 2, 4, 6, 1, 3, 5, 7);
        uint8_t byte[16];
        memcpy(byte, &h, sizeof byte);
        for (int k = 0; k < 16; k += W)
            vf_store(factor + q * 16 + k, factors_of(byte + k, threshold, scale));
    }
}
