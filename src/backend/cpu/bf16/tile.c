#include "backend/cpu/bf16/tile.h"

static const char *tile_of(const void *base, int64_t i)
{
    return (const char *)base + i * TILE_BYTES;
}

#if defined(__AMX_BF16__)
/* The operand of LDTILECFG: palette 1; for each of eight tiles its bytes per row and its rows. */
struct tile_config {
    uint8_t palette, start_row, zero[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Static, because gcc does not know that the instruction reads more than the first bytes. */
static const struct tile_config config = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {TILE_SIDE, TILE_SIDE, TILE_SIDE, TILE_SIDE, TILE_SIDE, TILE_SIDE, TILE_SIDE,
             TILE_SIDE},
};

void VEC(tile_begin)(void)
{
    _tile_loadconfig(&config);
}

void VEC(tile_end)(void)
{
    _tile_release();
}

enum { ROW_BYTES = 64 };

/* multiply_1 and multiply_2, for a depth of one or two tiles: two rows of tiles of a stay in
 * registers while b is streamed. The store of a tile of c directly follows the last multiplication
 * of this tile: a store takes as long as a multiplication, and they overlap only in this order. */
static void multiply_1(const struct tile_matmul *p, int64_t i)
{
    _tile_loadd(4, tile_of(p->a, i * p->a_row_stride), ROW_BYTES);
    _tile_loadd(5, tile_of(p->a, (i + 1) * p->a_row_stride), ROW_BYTES);
    float *c = p->c + i * p->c_row_stride * C_TILE_FLOATS,
          *down = c + p->c_row_stride * C_TILE_FLOATS;
    for (int64_t j = 0; j < p->columns; j += 2) {
        _tile_loadd(6, tile_of(p->b, j * p->b_column_stride), ROW_BYTES);
        _tile_zero(0);
        _tile_dpbf16ps(0, 4, 6);
        _tile_stored(0, c + j * p->c_column_stride * C_TILE_FLOATS, ROW_BYTES);
        _tile_zero(1);
        _tile_dpbf16ps(1, 5, 6);
        _tile_stored(1, down + j * p->c_column_stride * C_TILE_FLOATS, ROW_BYTES);
        _tile_loadd(7, tile_of(p->b, (j + 1) * p->b_column_stride), ROW_BYTES);
        _tile_zero(2);
        _tile_dpbf16ps(2, 4, 7);
        _tile_stored(2, c + (j + 1) * p->c_column_stride * C_TILE_FLOATS, ROW_BYTES);
        _tile_zero(3);
        _tile_dpbf16ps(3, 5, 7);
        _tile_stored(3, down + (j + 1) * p->c_column_stride * C_TILE_FLOATS, ROW_BYTES);
    }
}

static void multiply_2(const struct tile_matmul *p, int64_t i)
{
    _tile_loadd(2, tile_of(p->a, i * p->a_row_stride), ROW_BYTES);
    _tile_loadd(3, tile_of(p->a, i * p->a_row_stride + p->a_k_stride), ROW_BYTES);
    _tile_loadd(4, tile_of(p->a, (i + 1) * p->a_row_stride), ROW_BYTES);
    _tile_loadd(5, tile_of(p->a, (i + 1) * p->a_row_stride + p->a_k_stride), ROW_BYTES);
    float *c = p->c + i * p->c_row_stride * C_TILE_FLOATS,
          *down = c + p->c_row_stride * C_TILE_FLOATS;
    for (int64_t j = 0; j < p->columns; j++) {
        _tile_loadd(6, tile_of(p->b, j * p->b_column_stride), ROW_BYTES);
        _tile_loadd(7, tile_of(p->b, j * p->b_column_stride + p->b_k_stride), ROW_BYTES);
        _tile_zero(0);
        _tile_dpbf16ps(0, 2, 6);
        _tile_dpbf16ps(0, 3, 7);
        _tile_stored(0, c + j * p->c_column_stride * C_TILE_FLOATS, ROW_BYTES);
        _tile_zero(1);
        _tile_dpbf16ps(1, 4, 6);
        _tile_dpbf16ps(1, 5, 7);
        _tile_stored(1, down + j * p->c_column_stride * C_TILE_FLOATS, ROW_BYTES);
    }
}

/* For any depth: 2 x 2 tiles of c stay in registers, so four loads feed four multiplications. */
static void multiply_long(const struct tile_matmul *p, int64_t i, int64_t j)
{
    float *c0 = p->c + (i * p->c_row_stride + j * p->c_column_stride) * C_TILE_FLOATS,
          *c1 = c0 + p->c_column_stride * C_TILE_FLOATS;
    float *c2 = c0 + p->c_row_stride * C_TILE_FLOATS, *c3 = c1 + p->c_row_stride * C_TILE_FLOATS;
    if (p->add) {
        _tile_loadd(0, c0, ROW_BYTES);
        _tile_loadd(1, c1, ROW_BYTES);
        _tile_loadd(2, c2, ROW_BYTES);
        _tile_loadd(3, c3, ROW_BYTES);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    const char *a = tile_of(p->a, i * p->a_row_stride), *b = tile_of(p->b, j * p->b_column_stride);
    for (int64_t d = 0; d < p->depth; d++) {
        _tile_loadd(4, a, ROW_BYTES);
        _tile_loadd(6, b, ROW_BYTES);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, tile_of(b, p->b_column_stride), ROW_BYTES);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, tile_of(a, p->a_row_stride), ROW_BYTES);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        a += p->a_k_stride * TILE_BYTES;
        b += p->b_k_stride * TILE_BYTES;
    }
    _tile_stored(0, c0, ROW_BYTES);
    _tile_stored(1, c1, ROW_BYTES);
    _tile_stored(2, c2, ROW_BYTES);
    _tile_stored(3, c3, ROW_BYTES);
}

/* For a matrix with a single row of tiles: computes four tiles of c, or the last two. */
static void multiply_row(const struct tile_matmul *p, int64_t i, int64_t j)
{
    bool four = j + 4 <= p->columns;
    float *c = p->c + (i * p->c_row_stride + j * p->c_column_stride) * C_TILE_FLOATS;
    int64_t next = p->c_column_stride * C_TILE_FLOATS;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (p->add) {
        _tile_loadd(0, c, ROW_BYTES);
        _tile_loadd(1, c + next, ROW_BYTES);
        if (four) _tile_loadd(2, c + 2 * next, ROW_BYTES);
        if (four) _tile_loadd(3, c + 3 * next, ROW_BYTES);
    }
    const char *a = tile_of(p->a, i * p->a_row_stride), *b = tile_of(p->b, j * p->b_column_stride);
    for (int64_t d = 0; d < p->depth; d++) {
        _tile_loadd(4, a, ROW_BYTES);
        _tile_loadd(5, b, ROW_BYTES);
        _tile_dpbf16ps(0, 4, 5);
        _tile_loadd(6, tile_of(b, p->b_column_stride), ROW_BYTES);
        _tile_dpbf16ps(1, 4, 6);
        if (four) {
            _tile_loadd(7, tile_of(b, 2 * p->b_column_stride), ROW_BYTES);
            _tile_dpbf16ps(2, 4, 7);
            _tile_loadd(5, tile_of(b, 3 * p->b_column_stride), ROW_BYTES);
            _tile_dpbf16ps(3, 4, 5);
        }
        a += p->a_k_stride * TILE_BYTES;
        b += p->b_k_stride * TILE_BYTES;
    }
    _tile_stored(0, c, ROW_BYTES);
    _tile_stored(1, c + next, ROW_BYTES);
    if (four) _tile_stored(2, c + 2 * next, ROW_BYTES);
    if (four) _tile_stored(3, c + 3 * next, ROW_BYTES);
}

void VEC(tile_matmul)(const struct tile_matmul *p)
{
    for (int64_t i = 0; i < p->rows; i += 2) {
        if (p->rows == 1)
            for (int64_t j = 0; j < p->columns; j += 4) multiply_row(p, i, j);
        else if (!p->add && p->depth == 1)
            multiply_1(p, i);
        else if (!p->add && p->depth == 2)
            multiply_2(p, i);
        else
            for (int64_t j = 0; j < p->columns; j += 2) multiply_long(p, i, j);
    }
}

void VEC(tile_keep_awake)(void)
{
    _tile_dpbf16ps(0, 4, 5);
}

#else
void VEC(tile_begin)(void) {}
void VEC(tile_end)(void) {}
void VEC(tile_keep_awake)(void) {}

enum { C_ROWS = 8 };

/* C_ROWS rows of two tiles of c stay in registers. A step loads one row of each of two tiles of b
 * and multiplies it by one pair of elements of each row of a, broadcast to all columns. */
static void multiply_rows(const struct tile_matmul *p, int64_t i, int64_t j, int row)
{
    float *c =
        p->c + (i * p->c_row_stride + j * p->c_column_stride) * C_TILE_FLOATS + row * TILE_SIDE;
    vf sum[C_ROWS][2];
#pragma GCC unroll 8
    for (int r = 0; r < C_ROWS; r++)
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++)
            sum[r][k] = p->add ? vf_load(c + k * p->c_column_stride * C_TILE_FLOATS + r * TILE_SIDE)
                               : (vf){0};
    for (int64_t d = 0; d < p->depth; d++) {
        const char *a = tile_of(p->a, i * p->a_row_stride + d * p->a_k_stride) + row * 64;
        const char *b = tile_of(p->b, j * p->b_column_stride + d * p->b_k_stride);
        for (int pair = 0; pair < TILE_SIDE; pair++) {
            const char *at = b + pair * 64;
            __m512i left = _mm512_load_si512(at);
            __m512i right = _mm512_load_si512(at + p->b_column_stride * TILE_BYTES);
#pragma GCC unroll 8
            for (int r = 0; r < C_ROWS; r++) {
                int32_t two;
                memcpy(&two, a + r * 64 + pair * 4, sizeof two);
                __m512bh broadcast = (__m512bh)_mm512_set1_epi32(two);
                sum[r][0] = _mm512_dpbf16_ps(sum[r][0], broadcast, (__m512bh)left);
                sum[r][1] = _mm512_dpbf16_ps(sum[r][1], broadcast, (__m512bh)right);
            }
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < C_ROWS; r++)
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++)
            vf_store(c + k * p->c_column_stride * C_TILE_FLOATS + r * TILE_SIDE, sum[r][k]);
}

void VEC(tile_matmul)(const struct tile_matmul *p)
{
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < p->columns; j += 2)
            for (int row = 0; row < TILE_SIDE; row += C_ROWS) multiply_rows(p, i, j, row);
}
#endif
