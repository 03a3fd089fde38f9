/* 05_vectorized.cu - a tile of 64 x 64, and 16 bytes per access of memory.
 *
 * A thread loads a chunk of 16 bytes of a row, scatters its EACH elements down a column of the
 * tile, and later loads 16 bytes of a row of the tile and stores them. A warp handles 8 chunks of 4
 * rows: whole lines of 128 bytes on both sides. The swizzle works on chunks: chunk q of tile row k
 * is stored at q ^ (k / EACH), so both the scattered elements and the chunks fall into different
 * banks. Rows that are no multiple of 16 bytes go one element at a time. */
#include "device.cuh"

#define TILE 64

constexpr int EACH = 16 / sizeof(ELEMENT), CHUNKS = TILE / EACH;

/* The tile holds the transpose: row k is column k of the matrix. */
DEVICE int place(int k, int i)
{
    return k * TILE + ((i / EACH ^ k / EACH % CHUNKS) * EACH) + i % EACH;
}

KERNEL(256) transpose(ELEMENT *to, const ELEMENT *from, i64 rows, i64 columns)
{
    __shared__ __align__(16) ELEMENT tile[TILE * TILE];
    i64 row = (i64)blockIdx.y * TILE, column = (i64)blockIdx.x * TILE;
    bool wide = rows % EACH == 0 && columns % EACH == 0;
    for (int u = threadIdx.x; u < TILE * CHUNKS; u += 256) {
        int r = u / 32 % 16 * 4 + u / 8 % 4, c = (u / 512 * 8 + u % 8) * EACH;
        const ELEMENT *p = from + (row + r) * columns + column + c;
        union {
            uint4 all;
            ELEMENT one[EACH];
        } a;
        if (row + r >= rows) continue;
        if (wide && column + c < columns)
            a.all = *(const uint4 *)p;
        else
            UNROLL for (int k = 0; k < EACH; k++) if (column + c + k < columns) a.one[k] = p[k];
        UNROLL for (int k = 0; k < EACH; k++) tile[place(c + k, r)] = a.one[k];
    }
    __syncthreads();
    for (int u = threadIdx.x; u < TILE * CHUNKS; u += 256) {
        int k = u / 32 % 16 * 4 + u / 8 % 4, i = (u / 512 * 8 + u % 8) * EACH;
        ELEMENT *p = to + (column + k) * rows + row + i;
        if (column + k >= columns) continue;
        if (wide && row + i < rows)
            *(uint4 *)p = *(const uint4 *)&tile[place(k, i)];
        else
            for (int e = 0; e < EACH && row + i + e < rows; e++) p[e] = tile[place(k, i + e)];
    }
}
