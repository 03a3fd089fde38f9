#include "backend/cpu/bf16/tile.h"

static const char *tile_of(const void *base, int64_t i)
{
    return (const char *)base + i * TILE_BYTES;
}

#if defined(__AMX_BF16__)
/* What LDTILECFG reads: palette 1, and for each of eight tiles the bytes of a line and the lines. */
struct tile_config {
    uint8_t palette, start_row, zero[14];
    uint16_t line_bytes[16];
    uint8_t lines[16];
};

/* A constant: gcc does not know that the instruction reads more than its first bytes. */
static const struct tile_config config = {
    .palette = 1,
    .line_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .lines = {SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE},
};

void VEC(tile_begin)(void)
{
    _tile_loadconfig(&config);
}

void VEC(tile_end)(void)
{
    _tile_release();
}

enum { LINE = 64 };

/* Sums of one or two terms: two rows of a stay in registers while b passes by. All terms of one tile of
 * c follow each other and its store follows at once: a store takes as long as a product, and only in this
 * order do they overlap. */
static void multiply_1(const struct tile_matmul *p, int64_t i)
{
    _tile_loadd(4, tile_of(p->a, i * p->a_down), LINE);
    _tile_loadd(5, tile_of(p->a, (i + 1) * p->a_down), LINE);
    float *c = p->c + i * p->c_down * C_TILE, *down = c + p->c_down * C_TILE;
    for (int64_t j = 0; j < p->columns; j += 2) {
        _tile_loadd(6, tile_of(p->b, j * p->b_across), LINE);
        _tile_zero(0);
        _tile_dpbf16ps(0, 4, 6);
        _tile_stored(0, c + j * p->c_across * C_TILE, LINE);
        _tile_zero(1);
        _tile_dpbf16ps(1, 5, 6);
        _tile_stored(1, down + j * p->c_across * C_TILE, LINE);
        _tile_loadd(7, tile_of(p->b, (j + 1) * p->b_across), LINE);
        _tile_zero(2);
        _tile_dpbf16ps(2, 4, 7);
        _tile_stored(2, c + (j + 1) * p->c_across * C_TILE, LINE);
        _tile_zero(3);
        _tile_dpbf16ps(3, 5, 7);
        _tile_stored(3, down + (j + 1) * p->c_across * C_TILE, LINE);
    }
}

static void multiply_2(const struct tile_matmul *p, int64_t i)
{
    _tile_loadd(2, tile_of(p->a, i * p->a_down), LINE);
    _tile_loadd(3, tile_of(p->a, i * p->a_down + p->a_deep), LINE);
    _tile_loadd(4, tile_of(p->a, (i + 1) * p->a_down), LINE);
    _tile_loadd(5, tile_of(p->a, (i + 1) * p->a_down + p->a_deep), LINE);
    float *c = p->c + i * p->c_down * C_TILE, *down = c + p->c_down * C_TILE;
    for (int64_t j = 0; j < p->columns; j++) {
        _tile_loadd(6, tile_of(p->b, j * p->b_across), LINE);
        _tile_loadd(7, tile_of(p->b, j * p->b_across + p->b_deep), LINE);
        _tile_zero(0);
        _tile_dpbf16ps(0, 2, 6);
        _tile_dpbf16ps(0, 3, 7);
        _tile_stored(0, c + j * p->c_across * C_TILE, LINE);
        _tile_zero(1);
        _tile_dpbf16ps(1, 4, 6);
        _tile_dpbf16ps(1, 5, 7);
        _tile_stored(1, down + j * p->c_across * C_TILE, LINE);
    }
}

/* Longer sums: two by two tiles of c stay in registers, so that four loads feed four products. */
static void multiply_long(const struct tile_matmul *p, int64_t i, int64_t j)
{
    float *c0 = p->c + (i * p->c_down + j * p->c_across) * C_TILE, *c1 = c0 + p->c_across * C_TILE;
    float *c2 = c0 + p->c_down * C_TILE, *c3 = c1 + p->c_down * C_TILE;
    if (p->add) {
        _tile_loadd(0, c0, LINE);
        _tile_loadd(1, c1, LINE);
        _tile_loadd(2, c2, LINE);
        _tile_loadd(3, c3, LINE);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    const char *a = tile_of(p->a, i * p->a_down), *b = tile_of(p->b, j * p->b_across);
    for (int64_t d = 0; d < p->depth; d++) {
        _tile_loadd(4, a, LINE);
        _tile_loadd(6, b, LINE);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, tile_of(b, p->b_across), LINE);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, tile_of(a, p->a_down), LINE);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        a += p->a_deep * TILE_BYTES;
        b += p->b_deep * TILE_BYTES;
    }
    _tile_stored(0, c0, LINE);
    _tile_stored(1, c1, LINE);
    _tile_stored(2, c2, LINE);
    _tile_stored(3, c3, LINE);
}

/* One row of tiles: four columns, or two. */
static void multiply_row(const struct tile_matmul *p, int64_t i, int64_t j)
{
    bool four = j + 4 <= p->columns;
    float *c = p->c + (i * p->c_down + j * p->c_across) * C_TILE;
    int64_t next = p->c_across * C_TILE;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (p->add) {
        _tile_loadd(0, c, LINE);
        _tile_loadd(1, c + next, LINE);
        if (four) _tile_loadd(2, c + 2 * next, LINE);
        if (four) _tile_loadd(3, c + 3 * next, LINE);
    }
    const char *a = tile_of(p->a, i * p->a_down), *b = tile_of(p->b, j * p->b_across);
    for (int64_t d = 0; d < p->depth; d++) {
        _tile_loadd(4, a, LINE);
        _tile_loadd(5, b, LINE);
        _tile_dpbf16ps(0, 4, 5);
        _tile_loadd(6, tile_of(b, p->b_across), LINE);
        _tile_dpbf16ps(1, 4, 6);
        if (four) {
            _tile_loadd(7, tile_of(b, 2 * p->b_across), LINE);
            _tile_dpbf16ps(2, 4, 7);
            _tile_loadd(5, tile_of(b, 3 * p->b_across), LINE);
            _tile_dpbf16ps(3, 4, 5);
        }
        a += p->a_deep * TILE_BYTES;
        b += p->b_deep * TILE_BYTES;
    }
    _tile_stored(0, c, LINE);
    _tile_stored(1, c + next, LINE);
    if (four) _tile_stored(2, c + 2 * next, LINE);
    if (four) _tile_stored(3, c + 3 * next, LINE);
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

void VEC(tile_awake)(void)
{
    _tile_dpbf16ps(0, 4, 5);
}

#else
void VEC(tile_begin)(void) {}
void VEC(tile_end)(void) {}
void VEC(tile_awake)(void) {}

enum { LINES = 8 };

/* LINES rows of two tiles of c in registers: a step loads a line of each tile of b and takes one pair of
 * each row of a to all columns. */
static void multiply_lines(const struct tile_matmul *p, int64_t i, int64_t j, int line)
{
    float *c = p->c + (i * p->c_down + j * p->c_across) * C_TILE + line * SIDE;
    vf sum[LINES][2];
#pragma GCC unroll 8
    for (int r = 0; r < LINES; r++)
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++)
            sum[r][k] = p->add ? vf_load(c + k * p->c_across * C_TILE + r * SIDE) : (vf){0};
    for (int64_t d = 0; d < p->depth; d++) {
        const char *a = tile_of(p->a, i * p->a_down + d * p->a_deep) + line * 64;
        const char *b = tile_of(p->b, j * p->b_across + d * p->b_deep);
        for (int pair = 0; pair < SIDE; pair++) {
            const char *at = b + pair * 64;
            __m512i left = _mm512_load_si512(at);
            __m512i right = _mm512_load_si512(at + p->b_across * TILE_BYTES);
#pragma GCC unroll 8
            for (int r = 0; r < LINES; r++) {
                int32_t two;
                memcpy(&two, a + r * 64 + pair * 4, sizeof two);
                __m512bh all = (__m512bh)_mm512_set1_epi32(two);
                sum[r][0] = _mm512_dpbf16_ps(sum[r][0], all, (__m512bh)left);
                sum[r][1] = _mm512_dpbf16_ps(sum[r][1], all, (__m512bh)right);
            }
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < LINES; r++)
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) vf_store(c + k * p->c_across * C_TILE + r * SIDE, sum[r][k]);
}

void VEC(tile_matmul)(const struct tile_matmul *p)
{
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < p->columns; j += 2)
            for (int line = 0; line < SIDE; line += LINES) multiply_lines(p, i, j, line);
}
#endif
