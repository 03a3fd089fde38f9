#include "backend/cpu/bf16/pack.h"

#include "backend/cpu/bf16/softmax.h"

enum { PREFETCH_ROWS = 32 };

/* Loads 32 columns from `column` on of the 16 rows from `row` on; elements outside the source are
 * zero. For a whole block, prefetches later rows: the hardware does not, as rows are far apart. */
INLINE void load_rows(__m512i x[16], const struct pack_source *s, int64_t row, int64_t column)
{
    const bf16 *at = s->at + row * s->stride + column;
    if (row + TILE_SIDE <= s->rows && column + TILE_K <= s->columns) {
#pragma GCC unroll 16
        for (int r = 0; r < 16; r++) {
            x[r] = _mm512_loadu_si512(at + r * s->stride);
            __builtin_prefetch(at + (r + PREFETCH_ROWS) * s->stride);
        }
    } else {
        __mmask32 valid = first_lanes(s->columns - column);
#pragma GCC unroll 16
        for (int r = 0; r < 16; r++)
            x[r] = _mm512_maskz_loadu_epi16(row + r < s->rows ? valid : 0, at + r * s->stride);
    }
}

/* Transposes 16 rows of 16 32-bit lanes: lane j of row i goes to lane i of row j. */
INLINE void transpose(__m512i x[16])
{
    __m512i y[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    /* Now quarter q of x[4g+j] holds lane 4q+j of rows 4g ... 4g+3. */
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            x[i + 2 * j] = _mm512_unpacklo_epi64(y[i + j], y[i + 2 + j]);
            x[i + 2 * j + 1] = _mm512_unpackhi_epi64(y[i + j], y[i + 2 + j]);
        }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        y[j] = _mm512_shuffle_i32x4(x[j], x[4 + j], 0x88);           /* rows 0-7: quarters 0, 2 */
        y[4 + j] = _mm512_shuffle_i32x4(x[j], x[4 + j], 0xdd);       /* rows 0-7: quarters 1, 3 */
        y[8 + j] = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0x88);  /* rows 8-15: quarters 0, 2 */
        y[12 + j] = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0xdd); /* rows 8-15: quarters 1, 3 */
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        x[j] = _mm512_shuffle_i32x4(y[j], y[8 + j], 0x88);
        x[8 + j] = _mm512_shuffle_i32x4(y[j], y[8 + j], 0xdd);
        x[4 + j] = _mm512_shuffle_i32x4(y[4 + j], y[12 + j], 0x88);
        x[12 + j] = _mm512_shuffle_i32x4(y[4 + j], y[12 + j], 0xdd);
    }
}

INLINE void store_rows(char *to, const __m512i x[16])
{
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) _mm512_store_si512(to + i * 64, x[i]);
}

/* Interleaves two rows of 32 bf16 into pairs (VNNI). *left receives columns 0 to 15, *right columns
 * 16 to 31. */
INLINE void pair(__m512i even, __m512i odd, __m512i *left, __m512i *right)
{
    const __m512i spread = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    even = _mm512_permutexvar_epi64(spread, even);
    odd = _mm512_permutexvar_epi64(spread, odd);
    *left = _mm512_unpacklo_epi16(even, odd);
    *right = _mm512_unpackhi_epi16(even, odd);
}

void VEC(pack_rows)(void *to, const struct pack_source *s)
{
    int64_t k_tiles = tiles_of(s->columns) / 2, tiles = tiles_of(s->rows);
    for (int64_t i = 0; i < tiles; i++)
        for (int64_t d = 0; d < k_tiles; d++) {
            __m512i x[16];
            load_rows(x, s, i * TILE_SIDE, d * TILE_K);
            store_rows(tile_at(to, i * k_tiles + d), x);
        }
}

void VEC(pack_transposed)(void *to, const struct pack_source *s)
{
    int64_t k_tiles = tiles_of(s->columns) / 2, tiles = tiles_of(s->rows);
    for (int64_t i = 0; i < tiles; i++)
        for (int64_t d = 0; d < k_tiles; d++) {
            __m512i x[16];
            load_rows(x, s, i * TILE_SIDE, d * TILE_K);
            transpose(x);
            store_rows(tile_at(to, i * k_tiles + d), x);
        }
}

/* The two paired tiles of a block of 32 rows and 32 columns. */
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
    int64_t tiles_across = tiles_of(s->columns);
    for (int64_t row = 0; row < s->rows; row += TILE_K)
        for (int64_t j = 0; j < tiles_across; j += 2) {
            __m512i left[16], right[16];
            pair_block(left, right, s, row, j * TILE_SIDE);
            store_rows(tile_at(to, row / TILE_K * tiles_across + j), left);
            store_rows(tile_at(to, row / TILE_K * tiles_across + j + 1), right);
        }
}

void VEC(pack_paired_transposed)(void *to, const struct pack_source *s)
{
    int64_t tiles_across = tiles_of(s->columns);
    for (int64_t row = 0; row < s->rows; row += TILE_K)
        for (int64_t j = 0; j < tiles_across; j += 2) {
            __m512i left[16], right[16];
            pair_block(left, right, s, row, j * TILE_SIDE);
            transpose(left);
            store_rows(tile_at(to, row / TILE_K * tiles_across + j), left);
            transpose(right);
            store_rows(tile_at(to, row / TILE_K * tiles_across + j + 1), right);
        }
}

void VEC(unpack_rows)(const struct pack_target *t, const float *from, const float *factor)
{
    int64_t tiles_across = tiles_of(t->columns);
    for (int64_t row = 0; row < t->rows; row++) {
        vf by = vf_all(factor[row]);
        for (int64_t j = 0; j < tiles_across; j += 2) {
            const float *line = from + (row / TILE_SIDE * tiles_across + j) * C_TILE_FLOATS +
                                row % TILE_SIDE * TILE_SIDE;
            __m512i x = to_bf16(vf_load(line) * by, vf_load(line + C_TILE_FLOATS) * by);
            _mm512_mask_storeu_epi16(t->at + row * t->stride + j * TILE_SIDE,
                                     first_lanes(t->columns - j * TILE_SIDE), x);
        }
    }
}

/* Writes columns 32d to 32d+31 of 16 rows of the target: those of pack_row_of in the block of 32
 * rows around `row`. `from` holds the transposed matrix in tiles of fp32. */
static void write_transposed(const struct pack_target *t, const float *from, int64_t tiles_across,
                             int64_t row, int64_t d, float factor)
{
    const __m512i interleave = _mm512_setr_epi32(
        16 << 16 | 0, 17 << 16 | 1, 18 << 16 | 2, 19 << 16 | 3, 20 << 16 | 4, 21 << 16 | 5,
        22 << 16 | 6, 23 << 16 | 7, 24 << 16 | 8, 25 << 16 | 9, 26 << 16 | 10, 27 << 16 | 11,
        28 << 16 | 12, 29 << 16 | 13, 30 << 16 | 14, 31 << 16 | 15);
    __m512i x[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        const float *line = from +
                            ((2 * d + i / 8) * tiles_across + row / TILE_SIDE) * C_TILE_FLOATS +
                            i % 8 * 2 * TILE_SIDE;
        __m512i two = to_bf16(vf_load(line) * factor, vf_load(line + TILE_SIDE) * factor);
        x[i] = _mm512_permutexvar_epi16(interleave, two);
    }
    transpose(x);
    int half = (int)(row / TILE_SIDE % 2);
    int64_t block = row / TILE_K * TILE_K;
    __mmask32 valid = first_lanes(t->columns - d * TILE_K);
    for (int lane = 0; lane < TILE_SIDE; lane++) {
        int64_t at = block + pack_row_of(half, lane);
        if (at < t->rows)
            _mm512_mask_storeu_epi16(t->at + at * t->stride + d * TILE_K, valid, x[lane]);
    }
}

void VEC(unpack_transposed)(const struct pack_target *t, const float *from, int64_t tiles_across,
                            float factor)
{
    for (int64_t row = 0; row < min_i64(tiles_across, tiles_of(t->rows)) * TILE_SIDE;
         row += TILE_SIDE)
        for (int64_t d = 0; d < tiles_of(t->columns) / 2; d++)
            write_transposed(t, from, tiles_across, row, d, factor);
}
