/* vectors.h - a block of W x W floats, transposed in registers; for rungs of transpose. */
#ifndef LAB_TRANSPOSE_CPU_VECTORS_H
#define LAB_TRANSPOSE_CPU_VECTORS_H

#include "lab/cpu.h"

/* In each block of 2s x 2s, exchanges the s x s block right of the diagonal with the s x s block
 * below the diagonal. All steps s = W / 2 ... 1 together are the transpose (Eklundh, "A fast
 * computer method for matrix transposing", 1972). */
#define EXCHANGE(s)                                           \
    for (int i = 0; i < W; i++) {                             \
        if (i & (s)) continue;                                \
        vf a = v[i], b = v[i + (s)];                          \
        v[i] = vf_select(upper_##s, VEC_SWAP(b, s), a);       \
        v[i + (s)] = vf_select(upper_##s, b, VEC_SWAP(a, s)); \
    }
#define UPPER(s) vi upper_##s = ((vi){VEC_LANES} & (s)) != 0;

/* Transposes W x W floats. The stride of `to` is `rows`, the stride of `from` is `columns`. */
INLINE void transpose_block(float *to, int64_t rows, const float *from, int64_t columns)
{
    vf v[W];
    VEC_HALVES(UPPER)
    for (int i = 0; i < W; i++) v[i] = vf_load(from + i * columns);
    VEC_HALVES(EXCHANGE)
    for (int i = 0; i < W; i++) vf_store(to + i * rows, v[i]);
}

/* Transposes columns first ... last - 1 of the source, W columns at a time. Elements that do not
 * fill a block are copied one by one. */
INLINE void transpose_columns_of(const struct lab_call *c, int64_t first, int64_t last)
{
    const float *from = c->in[0];
    float *to = c->out;
    int64_t rows = c->n[0], columns = c->n[1];
    for (int64_t j = first; j < last; j += W)
        for (int64_t i = 0; i < rows; i += W) {
            if (j + W <= last && i + W <= rows) {
                transpose_block(to + j * rows + i, rows, from + i * columns + j, columns);
                continue;
            }
            for (int64_t column = j; column < j + W && column < last; column++)
                for (int64_t row = i; row < i + W && row < rows; row++)
                    to[column * rows + row] = from[row * columns + column];
        }
}

/* Transposes rows first ... last - 1 of the source, at most LINE rows. If there are LINE rows and
 * each row of the result begins at a line, they fill whole lines of the result, which are written
 * by streaming stores; other elements are copied one by one. */
enum { LINE = 16 }; /* floats */
INLINE void transpose_lines(const struct lab_call *c, int64_t first, int64_t last)
{
    _Alignas(64) float buffer[W * LINE];
    const float *from = c->in[0];
    float *to = c->out;
    int64_t rows = c->n[0], columns = c->n[1], column = 0;
    bool whole = last - first == LINE && rows % LINE == 0;
    for (; whole && column + W <= columns; column += W) {
        for (int i = 0; i < LINE; i += W)
            transpose_block(buffer + i, LINE, from + (first + i) * columns + column, columns);
        for (int j = 0; j < W; j++)
            for (int i = 0; i < LINE; i += W)
                vf_stream(to + (column + j) * rows + first + i, vf_load(buffer + j * LINE + i));
    }
    for (; column < columns; column++)
        for (int64_t i = first; i < last; i++) to[column * rows + i] = from[i * columns + column];
    vf_stream_end();
}

#endif
