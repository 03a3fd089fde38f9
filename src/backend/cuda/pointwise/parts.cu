/* parts.cu - splits and concatenates rows: (...,C) and up to four parts of its rows.
 *
 * WORD: bytes of a word, 2 to 16, the largest that divides all rows; columns are counted in words.
 * Bound by memory: every word is read and written once; a thread moves TIMES words. */
#include "device.cuh"

#define THREADS 256
enum { TIMES = 4 };
typedef word_of<WORD>::type word;
#define EACH_TIME _Pragma("unroll") for (int k = 0; k < TIMES; k++)

/* Part 0 ends before column a, 1 before b, 2 before c, 3 before C; missing parts are empty. */
struct ends {
    u32 a, b, c, C;
};
/* The address, in its part, of word i of the whole tensor. */
template <typename W> DEVICE W *slot_of(u32 i, const ends &e, W *y0, W *y1, W *y2, W *y3)
{
    const u32 row = i / e.C, column = i - row * e.C;
    if (column < e.a) return y0 + row * e.a + column;
    if (column < e.b) return y1 + row * (e.b - e.a) + (column - e.a);
    if (column < e.c) return y2 + row * (e.c - e.b) + (column - e.b);
    return y3 + row * (e.C - e.c) + (column - e.c);
}
DEVICE u32 word_of_thread(int k)
{
    return (blockIdx.x * TIMES + k) * THREADS + threadIdx.x;
}

KERNEL(THREADS)
split(const word *x, word *y0, word *y1, word *y2, word *y3, u32 n, u32 end0, u32 end1, u32 end2,
      u32 columns)
{
    const ends e = {end0, end1, end2, columns};
    word v[TIMES];
    EACH_TIME if (word_of_thread(k) < n) v[k] = x[word_of_thread(k)];
    EACH_TIME if (word_of_thread(k) < n) *slot_of(word_of_thread(k), e, y0, y1, y2, y3) = v[k];
}

KERNEL(THREADS)
concat(const word *x0, const word *x1, const word *x2, const word *x3, word *y, u32 n, u32 end0,
       u32 end1, u32 end2, u32 columns)
{
    const ends e = {end0, end1, end2, columns};
    word v[TIMES];
    EACH_TIME if (word_of_thread(k) < n) v[k] = *slot_of(word_of_thread(k), e, x0, x1, x2, x3);
    EACH_TIME if (word_of_thread(k) < n) y[word_of_thread(k)] = v[k];
}
