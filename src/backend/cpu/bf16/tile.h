/* tile.h - products of bfloat16 matrices that lie in tiles of 16 lines of 64 bytes.
 *
 * The sources of this folder are compiled for AMX and for AVX512_BF16, as those of vector/ are for theirs:
 * only tile.c knows which. Both multiply pairs of bf16 and add into fp32 (Intel, Intrinsics Guide:
 * _tile_dpbf16ps, _mm512_dpbf16_ps), so both want the same tiles of c += a b:
 *
 *   a   16 rows,  a line is 32 neighbours along the sum;
 *   b   16 pairs along the sum, a line is 16 columns, each with its pair;
 *   c   16 rows,  a line is 16 columns, fp32.
 *
 * A matrix is any number of tiles at regular distances, which are counted in tiles. */
#ifndef BACKEND_CPU_BF16_TILE_H
#define BACKEND_CPU_BF16_TILE_H

#include "backend/cpu/vector/vector.h"
#include "base/base.h"

enum {
    SIDE = 16,         /* lines of a tile; rows and columns of c */
    DEEP = 32,         /* terms of the sum in one tile */
    TILE_BYTES = 1024, /* of any tile */
    C_TILE = 256,      /* floats of a tile of c */
};

typedef uint16_t bf16;

/* c = a b, or c += a b. Columns are an even number of tiles, rows too unless there is one. */
struct tile_product {
    int64_t rows, columns, depth; /* in tiles; depth at least 1 */
    const void *a;
    int64_t a_down, a_deep;
    const void *b;
    int64_t b_across, b_deep;
    float *c;
    int64_t c_down, c_across;
    bool add;
};
void VEC(tile_multiply)(const struct tile_product *p);

/* Around all products of a thread's share of a call: its tile registers are set up, and given back so that
 * no other library finds them taken. */
void VEC(tile_begin)(void);
void VEC(tile_end)(void);
/* The unit that multiplies tiles goes to sleep when it had nothing to do for about half a microsecond, and
 * takes a quarter to wake up (measured on a Xeon with AMX: 660 ticks of 2.6 GHz after 1400). So whoever does
 * other things for longer calls this in between, at best every quarter of a microsecond. */
void VEC(tile_awake)(void);

/* Tile number i of a matrix. */
INLINE void *tile_at(void *base, int64_t i)
{
    return (char *)base + i * TILE_BYTES;
}

/* A thread's share of a call's scratch, handed out piece by piece; without memory, only counted. */
struct room {
    char *memory;
    int64_t taken;
};
INLINE struct room room_of(void *scratch, int thread, int64_t bytes)
{
    return (struct room){(char *)scratch + thread * bytes, 0};
}
/* `bytes`, rounded up to whole lines. */
INLINE void *take_room(struct room *r, int64_t bytes)
{
    char *here = r->memory ? r->memory + r->taken : NULL;
    r->taken += round_up(bytes, 64);
    return here;
}

#endif
