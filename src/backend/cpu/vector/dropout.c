/* Philox 4x32-10 for W counters at once: lane by lane the same words as rng_block. */
#include "backend/cpu/vector/dropout.h"

#include "base/rng.h"

struct words {
    vu w[4];
};

/* The 64-bit products of all lanes with m, as high and low words. */
INLINE void multiply(vu a, uint32_t m, vu *high, vu *low)
{
    vu factor = (vu){0} + m;
    vu64 even = vu_mul_even(a, factor), odd = vu_mul_even((vu)((vu64)a >> 32), factor);
    *low = (vu)((even & 0xffffffffu) | (odd << 32));
    *high = (vu)((even >> 32) | (odd & ~(uint64_t)0xffffffffu));
}

INLINE struct words draw(uint32_t seed, struct words c)
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

void VEC(dropout_factors)(float *factor, const struct dropout *d, uint32_t step, int64_t first,
                          int64_t n)
{
    const int threshold = d->threshold;
    const float scale = dropout_scale(threshold);
    for (int64_t call = first / 16; call * 16 < first + n; call += W) {
        vu low = (uint32_t)call + (vu){VEC_LANES};
        vu high = (uint32_t)(call >> 32) + ((vu)(low < (uint32_t)call) & 1u);
        vu zero = {0};
        struct words r = draw(d->seed, (struct words){{low, high, zero + d->site, zero + step}});
        uint32_t word[4][W], in_order[W][4]; /* lane, word: then its bytes follow the elements */
        memcpy(word, r.w, sizeof word);
        for (int lane = 0; lane < W; lane++)
            for (int i = 0; i < 4; i++) in_order[lane][i] = word[i][lane];
        uint8_t byte[16 * W];
        memcpy(byte, in_order, sizeof byte);
        int64_t begin = call * 16 > first ? call * 16 : first;
        int64_t end = (call + W) * 16 < first + n ? (call + W) * 16 : first + n;
        const uint8_t *from = byte + (begin - call * 16);
        float *to = factor + (begin - first);
        for (int64_t i = 0; i < end - begin; i++) to[i] = from[i] >= threshold ? scale : 0.0f;
    }
}

void VEC(dropout_words)(uint32_t word[4][16], const struct dropout *d, uint32_t step, int64_t bh,
                        int64_t q16, int64_t k16)
{
    for (int set = 0; set < 16; set += W) {
        vu zero = {0};
        vu low = (uint32_t)(q16 << 18 | k16 << 4 | set) + (vu){VEC_LANES};
        struct words r =
            draw(d->seed, (struct words){{low, zero + (uint32_t)bh, zero + d->site, zero + step}});
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
        /* The sets of row q lie in four neighbours; low halves are columns 0 to 7, high 8 to 15. */
        const uint32_t *w = &word[q / 8 * 2 + q % 2][q % 8 / 2 * 4];
        uint16_t half[8];
        for (int b = 0; b < 4; b++) half[b] = (uint16_t)w[b], half[b + 4] = (uint16_t)(w[b] >> 16);
        uint8_t byte[16];
        memcpy(byte, half, sizeof byte);
        for (int k = 0; k < 16; k++) factor[q * 16 + k] = byte[k] >= threshold ? scale : 0.0f;
    }
}
