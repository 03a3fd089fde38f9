#include "backend/cpu/vector/attention_rows.h"

/* One step of the transpose of W vectors of W lanes: swaps the off-diagonal squares of side s. */
#define LOW(lane, s)  ((lane) & (s) ? W + (lane) - (s) : (lane))
#define HIGH(lane, s) ((lane) & (s) ? W + (lane) : (lane) + (s))
#define TRANSPOSE_STEP(s)                                                \
    _Pragma("GCC unroll 16") for (int i = 0; i < W; i++) if (!(i & (s))) \
    {                                                                    \
        vf a = x[i], b = x[i + (s)];                                     \
        x[i] = VEC_PICK(a, b, LOW, s);                                   \
        x[i + (s)] = VEC_PICK(a, b, HIGH, s);                            \
    }

void ACT(tile_transpose)(float *to, const struct tile_source *s, float factor)
{
    for (int64_t row = 0; row < s->rows; row += W) {
        int64_t rows = min_i64(W, s->rows - row);
        for (int64_t column = 0; column < s->columns; column += W) {
            int64_t columns = min_i64(W, s->columns - column);
            const act *from = s->at + row * s->stride + column;
            vf x[W];
            if (rows == W && columns == W) {
#pragma GCC unroll 16
                for (int i = 0; i < W; i++) x[i] = load_full_act(from + i * s->stride) * factor;
            } else {
#pragma GCC unroll 16
                for (int i = 0; i < W; i++)
                    x[i] = i < rows ? load_act(from + i * s->stride, columns) * factor : (vf){0};
            }
            VEC_HALVES(TRANSPOSE_STEP)
            float *column_at = to + column * TILE + row;
            if (columns == W) {
#pragma GCC unroll 16
                for (int i = 0; i < W; i++) vf_store(column_at + i * TILE, x[i]);
            } else {
#pragma GCC unroll 16
                for (int i = 0; i < W; i++)
                    if (i < columns) vf_store(column_at + i * TILE, x[i]);
            }
        }
    }
}

void ACT(tile_copy)(float *to, const struct tile_source *s, float factor)
{
    for (int64_t row = 0; row < s->rows; row++) {
        const act *from = s->at + row * s->stride;
        for (int64_t i = 0; i < s->columns; i += W, to += W)
            vf_store(to, load_act(from + i, s->columns - i) * factor);
    }
}

void ACT(tile_write)(act *to, const struct tile_source *s, const float *from, const float *factor)
{
    for (int64_t row = 0; row < s->rows; row++, to += s->stride) {
        float by = factor ? factor[row] : 1.0f;
        for (int64_t i = 0; i < s->columns; i += W, from += W)
            store_act(to + i, vf_load(from) * by, s->columns - i);
    }
}

#if !ACT_IS_BF16
/* Rows that are at least this many floats apart compete for few cache sets of L1 and lie on many
 * pages. */
enum { FAR = 512 };
#endif

struct tile_rows ACT(tile_rows)(const struct tile_source *s, float *spare)
{
#if !ACT_IS_BF16
    if (s->columns % W == 0 && s->stride < FAR) return (struct tile_rows){s->at, s->stride};
#endif
    ACT(tile_copy)(spare, s, 1.0f);
    return (struct tile_rows){spare, round_up(s->columns, W)};
}

struct tile_source ACT(heads_part)(const struct heads *s, const act *qkv, int part, int64_t bh,
                                   int64_t row)
{
    const act *at = qkv + heads_part_at(s, part, bh, row);
    return (struct tile_source){at, s->row_size, min_i64(TILE, s->T - row), s->D};
}

struct tile_source ACT(heads_rows)(const struct heads *s, const act *y, int64_t bh, int64_t row)
{
    const act *at = y + heads_row_at(s, bh, row);
    return (struct tile_source){at, s->C, min_i64(TILE, s->T - row), s->D};
}
