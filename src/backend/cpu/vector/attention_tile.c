/* The matmul of tiles: outer products accumulated in registers. A step of the inner loop loads
 * `nv` vectors of b, broadcasts `mr` elements of a and does mr * nv FMAs, so that two loads a
 * cycle feed two FMAs a cycle, with enough independent sums to hide their latency. */
#include "backend/cpu/vector/attention_tile.h"

#include "backend/cpu/vector/dropout.h"

/* SUMS vectors of c are summed in registers: in 16 of 32 registers, or in 8 of 16. */
#if defined(__AVX512F__)
enum { MAX_VECTORS = 4, SUMS = 16, MAX_ROWS = 8 };
#elif defined(__AVX2__)
enum { MAX_VECTORS = 2, SUMS = 8, MAX_ROWS = 8 };
#else
enum { MAX_VECTORS = 2, SUMS = 8, MAX_ROWS = 4 };
#endif

/* Computes rows row ... row+mr-1 and vectors v ... v+nv-1 of c. mr, nv and across are constants
 * once inlined. */
INLINE void matmul_block(const struct tile_matmul *p, const int mr, const int nv, const bool across,
                         int64_t row, int64_t v)
{
    int64_t from = p->skip == SKIP_BEFORE ? row : 0;
    int64_t to = p->skip == SKIP_AFTER ? min_i64(row + mr, p->depth) : p->depth;
    const int64_t stride = p->a_stride, b_stride = p->b_stride, c_stride = p->c_stride;
    const float *a = p->a + (across ? row + from * stride : row * stride + from);
    const float *b = p->b + from * b_stride + v * W;
    float *c = p->c + row * c_stride + v * W;
    vf sum[8][4];
#pragma GCC unroll 8
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
        for (int k = 0; k < nv; k++) sum[i][k] = (vf){0};
    for (int64_t j = from; j < to; j++) {
        vf b_row[4];
#pragma GCC unroll 4
        for (int k = 0; k < nv; k++) b_row[k] = vf_load(b + k * W);
#pragma GCC unroll 8
        for (int i = 0; i < mr; i++) {
            vf x = vf_all(across ? a[i] : a[i * stride]);
#pragma GCC unroll 4
            for (int k = 0; k < nv; k++) sum[i][k] += x * b_row[k];
        }
        a += across ? stride : 1;
        b += b_stride;
    }
    const float *factor = p->factor ? p->factor + row : NULL;
    if (p->add && factor) {
#pragma GCC unroll 8
        for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
            for (int k = 0; k < nv; k++)
                sum[i][k] += vf_load(c + i * c_stride + k * W) * vf_all(factor[i]);
    } else if (p->add) {
#pragma GCC unroll 8
        for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
            for (int k = 0; k < nv; k++) sum[i][k] += vf_load(c + i * c_stride + k * W);
    }
#pragma GCC unroll 8
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
        for (int k = 0; k < nv; k++) vf_store(c + i * c_stride + k * W, sum[i][k]);
}

/* Computes the rows row ... end-1 of c, as many at a time as the registers hold. */
INLINE void matmul_tiles_rows(const struct tile_matmul *p, const int nv, const bool across,
                              int64_t row, int64_t end, int64_t v)
{
    const int mr = SUMS / nv >= MAX_ROWS ? MAX_ROWS : 4;
    for (; row + mr <= end; row += mr) matmul_block(p, mr, nv, across, row, v);
    if (mr > 4 && row + 4 <= end) {
        matmul_block(p, 4, nv, across, row, v);
        row += 4;
    }
    for (; row < end; row++) matmul_block(p, 1, nv, across, row, v);
}

INLINE void matmul_columns(const struct tile_matmul *p, const bool across, int64_t row, int64_t end,
                           int64_t v)
{
    while (v < p->vectors) {
        int64_t nv = min_i64(p->vectors - v, MAX_VECTORS);
        if (nv == 4 && MAX_VECTORS >= 4)
            matmul_tiles_rows(p, 4, across, row, end, v);
        else if (nv == 3 && MAX_VECTORS >= 3)
            matmul_tiles_rows(p, 3, across, row, end, v);
        else if (nv == 2)
            matmul_tiles_rows(p, 2, across, row, end, v);
        else
            matmul_tiles_rows(p, 1, across, row, end, v);
        v += nv;
    }
}

void VEC(tile_matmul)(const struct tile_matmul *p)
{
    if (p->skip == SKIP_COLUMNS)
        for (int64_t row = 0; row < p->rows; row += W)
            matmul_columns(p, false, row, min_i64(row + W, p->rows), row / W);
    else if (p->across)
        matmul_columns(p, true, 0, p->rows, 0);
    else
        matmul_columns(p, false, 0, p->rows, 0);
}

/* --- dropout --- */

void VEC(tile_mask)(struct tile_mask *to, const struct dropout *d, uint32_t step, int64_t bh,
                    int64_t q, int64_t k, bool diagonal)
{
    for (int64_t k16 = 0; k16 < TILE / 16; k16++)
        for (int64_t q16 = diagonal ? k16 : 0; q16 < TILE / 16; q16++) {
            uint32_t word[4][16];
            VEC(dropout_words)(word, d, step, bh, q / 16 + q16, k / 16 + k16);
            for (int b = 0; b < 4; b++) {
                uint32_t *words = &to->word[k16 * 4 + b][q16 * 16];
                for (int i = 0; i < 16; i++) words[i] = word[i / 8 * 2 + i % 2][i % 8 / 2 * 4 + b];
            }
        }
}
