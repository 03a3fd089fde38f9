/* tile.h - matmuls of bf16 matrices that are stored as tiles of 16 rows of 64 bytes.
 *
 * The sources of this folder are compiled twice, for AMX and for AVX512_BF16; only tile.c has
 * different code for the two. Both instruction sets multiply pairs of bf16 and accumulate in fp32
 * (Intel, Intrinsics Guide: _tile_dpbf16ps, _mm512_dpbf16_ps), so c += a b uses the same tiles:
 *
 *   a   a row holds 32 consecutive elements along K;
 *   b   VNNI layout: row i holds elements 2i and 2i+1 along K for each of 16 columns;
 *   c   a row holds 16 columns, fp32.
 *
 * A matrix is any number of tiles at regular strides, which are counted in tiles. */
#ifndef BACKEND_CPU_BF16_TILE_H
#define BACKEND_CPU_BF16_TILE_H

#include "backend/cpu/vector/vector.h"
#include "base/base.h"

enum {
    TILE_SIDE = 16,      /* rows of a tile; rows and columns of c */
    TILE_K = 32,         /* elements along K in one tile */
    TILE_BYTES = 1024,   /* size of every tile */
    C_TILE_FLOATS = 256, /* floats in a tile of c */
};

typedef uint16_t bf16;

/* c = a b, or c += a b. `columns` is even; `rows` is even or 1. */
struct tile_matmul {
    int64_t rows, columns, depth; /* in tiles; depth at least 1 */
    const void *a;
    int64_t a_row_stride, a_k_stride;
    const void *b;
    int64_t b_column_stride, b_k_stride;
    float *c;
    int64_t c_row_stride, c_column_stride;
    bool add;
};
void VEC(tile_matmul)(const struct tile_matmul *p);

/* Each thread calls tile_begin before its first matmul of a call and tile_end after its last.
 * tile_begin configures the tile registers; tile_end releases them for other libraries. */
void VEC(tile_begin)(void);
void VEC(tile_end)(void);
/* The AMX unit goes to sleep after about half a microsecond without work and takes a quarter of a
 * microsecond to wake up (measured on a Xeon at 2.6 GHz: 660 cycles after 1400 idle cycles). Long
 * work without matmuls calls this function in between, ideally every quarter of a microsecond. */
void VEC(tile_keep_awake)(void);

INLINE void *tile_at(void *base, int64_t i)
{
    return (char *)base + i * TILE_BYTES;
}

/* An allocator for one thread's part of a call's scratch. If `memory` is NULL, the allocator only
 * counts bytes. */
struct scratch {
    char *memory;
    int64_t used;
};
INLINE struct scratch scratch_of(void *scratch, int thread, int64_t bytes)
{
    return (struct scratch){(char *)scratch + thread * bytes, 0};
}
/* `bytes` are rounded up to whole cache lines. */
INLINE void *scratch_take(struct scratch *s, int64_t bytes)
{
    char *here = s->memory ? s->memory + s->used : NULL;
    s->used += round_up(bytes, 64);
    return here;
}

#endif
