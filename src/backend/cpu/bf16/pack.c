#include "backend/cpu/bf16/pack.h"

#include "backend/cpu/bf16/softmax.h"

enum { AHEAD = 32 }; /* rows */

/* 32 columns from `column` on of the 16 rows from `row` on; what is not there is zero. Rows further down are
 * fetched ahead: they lie too far apart for the processor to see what comes. */
INLINE void load_rows(__m512i x[16], const struct pack_source *s, int64_t row, int64_t column)
{
    const bf16 *at = s->at + row * s->stride + column;
    if (row + SIDE <= s->rows && column + DEEP <= s->columns) {
#pragma GCC unroll 16
        for (int r = 0; r < 16; r++) {
            x[r] = _mm512_loadu_si512(at + r * s->stride);
            __builtin_prefetch(at + (r + AHEAD) * s->stride);
        }
    } else {
        __mmask32 there = first_words(s->columns - column);
#pragma GCC unroll 16
        for (int r = 0; r < 16; r++)
            x[r] = _mm512_maskz_loadu_epi16(row + r < s->rows ? there : 0, at + r * s->stride);
    }
}

/* Turns 16 lines of 16 pairs: lane j of line i goes to lane i of line j. */
INLINE void turn(__m512i x[16])
{
    __m512i y[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    /* x[4g+j]: in its four quarters q, lane 4q+j of lines 4g ... 4g+3 */
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            x[i + 2 * j] = _mm512_unpacklo_epi64(y[i + j], y[i + 2 + j]);
            x[i + 2 * j + 1] = _mm512_unpackhi_epi64(y[i + j], y[i + 2 + j]);
        }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        y[j] = _mm512_shuffle_i32x4(x[j], x[4 + j], 0x88);          /* quarters 0 and 2 */
        y[4 + j] = _mm512_shuffle_i32x4(x[j], x[4 + j], 0xdd);      /* 1 and 3 */
        y[8 + j] = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0x88); /* of lines 8 to 15 */
        y[12 + j] = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0xdd);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        x[j] = _mm512_shuffle_i32x4(y[j], y[8 + j], 0x88);
        x[8 + j] = _mm512_shuffle_i32x4(y[j], y[8 + j], 0xdd);
        x[4 + j] = _mm512_shuffle_i32x4(y[4 + j], y[12 + j], 0x88);
        x[12 + j] = _mm512_shuffle_i32x4(y[4 + j], y[12 + j], 0xdd);
    }
}

INLINE void store_lines(char *to, const __m512i x[16])
{
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) _mm512_store_si512(to + i * 64, x[i]);
}

/* Words of the low half of each line in front, then those of the high half, as the low and the high words of
 * pairs: line i is made of rows 2i and 2i+1, `left` of columns 0 to 15, `right` of 16 to 31. */
INLINE void pair(__m512i low, __m512i high, __m512i *left, __m512i *right)
{
    const __m512i spread = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    low = _mm512_permutexvar_epi64(spread, low);
    high = _mm512_permutexvar_epi64(spread, high);
    *left = _mm512_unpacklo_epi16(low, high);
    *right = _mm512_unpackhi_epi16(low, high);
}

void VEC(pack_lines)(void *to, const struct pack_source *s)
{
    int64_t deep = tiles_of(s->columns) / 2, tiles = tiles_of(s->rows);
    for (int64_t i = 0; i < tiles; i++)
        for (int64_t d = 0; d < deep; d++) {
            __m512i x[16];
            load_rows(x, s, i * SIDE, d * DEEP);
            store_lines(tile_at(to, i * deep + d), x);
        }
}

void VEC(pack_turned)(void *to, const struct pack_source *s)
{
    int64_t deep = tiles_of(s->columns) / 2, tiles = tiles_of(s->rows);
    for (int64_t i = 0; i < tiles; i++)
        for (int64_t d = 0; d < deep; d++) {
            __m512i x[16];
            load_rows(x, s, i * SIDE, d * DEEP);
            turn(x);
            store_lines(tile_at(to, i * deep + d), x);
        }
}

/* The two tiles of a block of 32 rows and 32 columns. */
INLINE void pair_block(__m512i left[16], __m512i right[16], const struct pack_source *s,
                       int64_t row, int64_t column)
{
#pragma GCC unroll 2
    for (int half = 0; half < 16; half += 8) {
        __m512i x[16];
        load_rows(x, s, row + 2 * half, column);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) pair(x[2 * i], x[2 * i + 1], &left[half + i], &right[half + i]);
    }
}

void VEC(pack_paired)(void *to, const struct pack_source *s)
{
    int64_t across = tiles_of(s->columns);
    for (int64_t row = 0; row < s->rows; row += DEEP)
        for (int64_t j = 0; j < across; j += 2) {
            __m512i left[16], right[16];
            pair_block(left, right, s, row, j * SIDE);
            store_lines(tile_at(to, row / DEEP * across + j), left);
            store_lines(tile_at(to, row / DEEP * across + j + 1), right);
        }
}

void VEC(pack_paired_turned)(void *to, const struct pack_source *s)
{
    int64_t across = tiles_of(s->columns);
    for (int64_t row = 0; row < s->rows; row += DEEP)
        for (int64_t j = 0; j < across; j += 2) {
            __m512i left[16], right[16];
            pair_block(left, right, s, row, j * SIDE);
            turn(left);
            store_lines(tile_at(to, row / DEEP * across + j), left);
            turn(right);
            store_lines(tile_at(to, row / DEEP * across + j + 1), right);
        }
}

void VEC(unpack_lines)(const struct pack_target *t, const float *from, const float *factor)
{
    int64_t across = tiles_of(t->columns);
    for (int64_t row = 0; row < t->rows; row++) {
        vf by = vf_all(factor[row]);
        for (int64_t j = 0; j < across; j += 2) {
            const float *line = from + (row / SIDE * across + j) * C_TILE + row % SIDE * SIDE;
            __m512i x = narrow(vf_load(line) * by, vf_load(line + C_TILE) * by);
            _mm512_mask_storeu_epi16(t->at + row * t->stride + j * SIDE,
                                     first_words(t->columns - j * SIDE), x);
        }
    }
}

/* Columns 32d to 32d+31 of 16 rows. */
static void write_turned(const struct pack_target *t, const float *from, int64_t across,
                         int64_t row, int64_t d, float factor)
{
    const __m512i weave = _mm512_setr_epi32(
        16 << 16 | 0, 17 << 16 | 1, 18 << 16 | 2, 19 << 16 | 3, 20 << 16 | 4, 21 << 16 | 5,
        22 << 16 | 6, 23 << 16 | 7, 24 << 16 | 8, 25 << 16 | 9, 26 << 16 | 10, 27 << 16 | 11,
        28 << 16 | 12, 29 << 16 | 13, 30 << 16 | 14, 31 << 16 | 15);
    __m512i x[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        const float *line =
            from + ((2 * d + i / 8) * across + row / SIDE) * C_TILE + i % 8 * 2 * SIDE;
        __m512i two = narrow(vf_load(line) * factor, vf_load(line + SIDE) * factor);
        x[i] = _mm512_permutexvar_epi16(weave, two);
    }
    turn(x);
    int half = (int)(row / SIDE % 2);
    int64_t block = row / DEEP * DEEP;
    __mmask32 there = first_words(t->columns - d * DEEP);
    for (int lane = 0; lane < SIDE; lane++) {
        int64_t at = block + pack_row_of(half, lane);
        if (at < t->rows)
            _mm512_mask_storeu_epi16(t->at + at * t->stride + d * DEEP, there, x[lane]);
    }
}

void VEC(unpack_turned)(const struct pack_target *t, const float *from, int64_t across,
                        float factor)
{
    for (int64_t row = 0; row < min_i64(across, tiles_of(t->rows)) * SIDE; row += SIDE)
        for (int64_t d = 0; d < tiles_of(t->columns) / 2; d++)
            write_turned(t, from, across, row, d, factor);
}
