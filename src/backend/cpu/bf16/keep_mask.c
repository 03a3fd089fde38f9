#include "backend/cpu/bf16/keep_mask.h"

/* The AVX-512 build of vector/dropout.c: every CPU with AMX or AVX512_BF16 has AVX-512. */
void dropout_words_avx512(uint32_t word[4][16], const struct dropout *d, uint32_t step, int64_t bh,
                          int64_t q16, int64_t k16);

/* word[i][a*4+b] holds bytes for the columns 2b, 2b+1, 2b+8, 2b+9 of row 2a, 2a+1, 2a+8, 2a+9 (for
 * i = 0, 1, 2, 3). A quarter of a register therefore holds one row, and only the order of the row's
 * bytes must be changed. */
static void by_query(uint16_t *to, int64_t stride, const uint32_t word[4][16], __m512i threshold)
{
    const __m512i order =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    for (int i = 0; i < 4; i++) {
        __m512i bytes = _mm512_shuffle_epi8(_mm512_loadu_si512(word[i]), order);
        uint64_t bits = _mm512_cmpge_epu8_mask(bytes, threshold);
        for (int a = 0; a < 4; a++, bits >>= 16)
            to[(i / 2 * 8 + 2 * a + i % 2) * stride] = (uint16_t)bits;
    }
}

/* Like by_query, but for the transposed block. First the words are regrouped: quarter a of register
 * of_b[b] holds word[0 ... 3][a*4+b]. Then each quarter is transposed as a 4 x 4 matrix of bytes,
 * and the register as a 4 x 4 matrix of words. Last, the bytes of a quarter are put in order. */
static void by_key(uint16_t *to, int64_t stride, const uint32_t word[4][16], __m512i threshold)
{
    const __m512i square =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m512i quarters =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i order =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    __m512i w[4], pairs[4], of_b[4];
    for (int i = 0; i < 4; i++) w[i] = _mm512_loadu_si512(word[i]);
    for (int i = 0; i < 4; i += 2) {
        pairs[i] = _mm512_unpacklo_epi32(w[i], w[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi32(w[i], w[i + 1]);
    }
    for (int b = 0; b < 4; b += 2) {
        of_b[b] = _mm512_unpacklo_epi64(pairs[b / 2], pairs[2 + b / 2]);
        of_b[b + 1] = _mm512_unpackhi_epi64(pairs[b / 2], pairs[2 + b / 2]);
    }
    for (int b = 0; b < 4; b++) {
        __m512i bytes = _mm512_permutexvar_epi32(quarters, _mm512_shuffle_epi8(of_b[b], square));
        uint64_t bits = _mm512_cmpge_epu8_mask(_mm512_shuffle_epi8(bytes, order), threshold);
        for (int j = 0; j < 4; j++, bits >>= 16)
            to[(j / 2 * 8 + 2 * b + j % 2) * stride] = (uint16_t)bits;
    }
}

void VEC(keep_mask)(uint16_t *to, int64_t stride, const struct dropout *d, uint32_t step,
                    int64_t bh, int64_t q16, int64_t k16, bool key_major)
{
    uint32_t word[4][16];
    dropout_words_avx512(word, d, step, bh, q16, k16);
    __m512i threshold = _mm512_set1_epi8((char)d->threshold);
    if (key_major)
        by_key(to, stride, word, threshold);
    else
        by_query(to, stride, word, threshold);
}
