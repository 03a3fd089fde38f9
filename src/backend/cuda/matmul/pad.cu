/* pad.cu - pads rows and removes the padding: matmuls are several times faster on rows of 16-byte
 * multiples.
 *
 * The dense matrix has (rows,columns) elements of T_X, and its rows are misaligned. The padded
 * matrix has rows of `width` elements, which are whole 16-byte words. Bound by memory: every
 * element is read and written once. A thread makes TIMES words of the result, each from two
 * adjacent aligned words of the source; the next thread reads the second of these words from cache.
 * Words across the end of a row are copied element by element. */
#include "device.cuh"

#define THREADS 256
enum { TIMES = 4, N = 16 / (int)sizeof(T_X) };

/* The 16 bytes from element `first` of two words. */
DEVICE uint4 shifted(uint4 low, uint4 high, int first)
{
    const int bytes = first * (int)sizeof(T_X);
    const u32 w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    u32 two[6], one[5], r[4];
    UNROLL for (int i = 0; i < 6; i++) two[i] = bytes & 8 ? w[i + 2] : w[i];
    UNROLL for (int i = 0; i < 5; i++) one[i] = bytes & 4 ? two[i + 1] : two[i];
    const u32 half = bytes & 2 ? 0x5432 : 0x3210;
    UNROLL for (int i = 0; i < 4; i++) r[i] = __byte_perm(one[i], one[i + 1], half);
    return make_uint4(r[0], r[1], r[2], r[3]);
}

/* The words that contain N elements from `first` on. */
struct source {
    uint4 low, high;
    int shift;
};
DEVICE source words_at(const T_X *x, u64 first)
{
    const uint4 *w = (const uint4 *)x + first / N;
    source s;
    s.shift = (int)(first % N);
    s.low = w[0];
    s.high = make_uint4(0, 0, 0, 0);
    if (s.shift) s.high = w[1];
    return s;
}

/* Zeros fill the padding columns and rows. `words`: the number of words of the result. */
KERNEL(THREADS) pad(const T_X *x, T_X *y, u32 words, u32 rows, u32 columns, u32 width)
{
    const u32 begin = blockIdx.x * (TIMES * THREADS) + threadIdx.x, row_words = width / N;
    source s[TIMES];
    UNROLL for (int k = 0; k < TIMES; k++) {
        const u32 i = begin + k * THREADS, row = i / row_words, column = (i - row * row_words) * N;
        if (i < words && row < rows && column + N <= columns)
            s[k] = words_at(x, (i64)row * columns + column);
    }
    UNROLL for (int k = 0; k < TIMES; k++) {
        const u32 i = begin + k * THREADS, row = i / row_words, column = (i - row * row_words) * N;
        if (i >= words) continue;
        vector_of<N, T_X> v;
        v.w[0] = make_uint4(0, 0, 0, 0);
        if (row < rows && column + N <= columns) {
            v.w[0] = shifted(s[k].low, s[k].high, s[k].shift);
        } else if (row < rows) {
            UNROLL for (int e = 0; e < N; e++)
                if (column + e < columns) v.x[e] = x[(i64)row * columns + column + e];
        }
        ((uint4 *)y)[i] = v.w[0];
    }
}

/* Removes the padding: x has rows of `width`, y `n` elements in dense rows. */
KERNEL(THREADS) cut(const T_X *x, T_X *y, i64 n, u32 columns, u32 width)
{
    const i64 begin = ((i64)blockIdx.x * (TIMES * THREADS) + threadIdx.x) * N;
    source s[TIMES];
    i64 row[TIMES];
    u32 column[TIMES];
    UNROLL for (int k = 0; k < TIMES; k++) {
        const i64 i = begin + k * (THREADS * N);
        row[k] = i >> 32 ? i / columns : (u32)i / columns;
        column[k] = (u32)(i - row[k] * columns);
        if (i + N <= n && column[k] + N <= columns) s[k] = words_at(x, row[k] * width + column[k]);
    }
    UNROLL for (int k = 0; k < TIMES; k++) {
        const i64 i = begin + k * (THREADS * N);
        if (i + N <= n && column[k] + N <= columns) {
            *(uint4 *)(y + i) = shifted(s[k].low, s[k].high, s[k].shift);
            continue;
        }
        for (int e = 0; e < N && i + e < n; e++) {
            y[i + e] = x[row[k] * width + column[k]];
            if (++column[k] == columns) column[k] = 0, row[k]++;
        }
    }
}
