/* 05_vectorized.cu - a tile of 64 x 64, and 16 bytes per access of memory.
 *
 * A thread loads a chunk of 16 bytes of a row, scatters its EACH elements down a column of the
 * tile, and later loads 16 bytes of a row of the tile and stores them. A warp handles 8
 * neighboring chunks of 4 rows: whole lines of 128 bytes on both sides. The swizzle works on
 * chunks: chunk q of tile row k is stored at q ^ (k / EACH), so both the scattered elements and the
 * chunks fall into different banks. If a row of either matrix is not a multiple of 16 bytes, each
 * access of memory takes one element. */
#include "device.cuh"

#define TILE 64

constexpr int EACH = 16 / sizeof(ELEMENT), CHUNKS = TILE / EACH, TIMES = TILE * CHUNKS / 256;

union chunk {
    uint4 all;
    ELEMENT one[EACH];
};

/* Where element i of tile row k is stored. Tile row k is column k of the matrix. */
DEVICE int place(int k, int i)
{
    return k * TILE + ((i / EACH ^ k / EACH % CHUNKS) * EACH) + i % EACH;
}

KERNEL(256) transpose(ELEMENT *to, const ELEMENT *from, i64 rows, i64 columns)
{
    __shared__ __align__(16) ELEMENT tile[TILE * TILE];
    i64 row = (i64)blockIdx.y * TILE, column = (i64)blockIdx.x * TILE;
    bool wide = rows % EACH == 0 && columns % EACH == 0;
    /* The tile has 16 groups of 4 rows and CHUNKS / 8 groups of 8 chunks; at a time, a warp takes
     * one group of chunks of one group of rows. */
    int lane_row = threadIdx.x / 8 % 4, lane_chunk = threadIdx.x % 8, warp = threadIdx.x / 32;
    chunk a[TIMES];
    UNROLL for (int t = 0; t < TIMES; t++) {
        int group = warp + t * 8, r = group % 16 * 4 + lane_row;
        int c = (group / 16 * 8 + lane_chunk) * EACH;
        const ELEMENT *p = from + (row + r) * columns + column + c;
        if (row + r >= rows) continue;
        if (wide && column + c < columns) a[t].all = *(const uint4 *)p;
        if (!wide)
            for (int k = 0; k < EACH && column + c + k < columns; k++) a[t].one[k] = p[k];
    }
    UNROLL for (int t = 0; t < TIMES; t++) {
        int group = warp + t * 8, r = group % 16 * 4 + lane_row;
        int c = (group / 16 * 8 + lane_chunk) * EACH;
        UNROLL for (int k = 0; k < EACH; k++) tile[place(c + k, r)] = a[t].one[k];
    }
    __syncthreads();
    UNROLL for (int t = 0; t < TIMES; t++) {
        int group = warp + t * 8, k = group % 16 * 4 + lane_row;
        int i = (group / 16 * 8 + lane_chunk) * EACH;
        ELEMENT *p = to + (column + k) * rows + row + i;
        if (column + k >= columns) continue;
        if (wide && row + i < rows) *(uint4 *)p = *(const uint4 *)&tile[place(k, i)];
        if (!wide)
            for (int e = 0; e < EACH && row + i + e < rows; e++) p[e] = tile[place(k, i + e)];
    }
}
