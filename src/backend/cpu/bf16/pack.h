/* pack.h - packs one head of q, k, v or dy into tiles (tile.h), and unpacks tiles of results.
 *
 * A head is read and written in place: D consecutive elements in each row, with rows far apart.
 * The result consists of blocks of 32 rows and 32 columns, two tiles each, padded with zeros:
 *
 *   rows               a  K = columns: the rows unchanged
 *   transposed         b  K = columns: row i has columns 2i, 2i+1 of each of 16 source rows
 *   paired             b  K = rows: row i has source rows 2i, 2i+1 of each of 16 columns
 *   paired_transposed  a  K = rows: row i has column i of 32 source rows */
#ifndef BACKEND_CPU_BF16_PACK_H
#define BACKEND_CPU_BF16_PACK_H

#include "backend/cpu/bf16/tile.h"

struct pack_source {
    const bf16 *at;
    int64_t stride, rows, columns; /* in elements */
};

/* The number of tiles of 16 that n elements need, rounded up to an even number. */
INLINE int64_t tiles_of(int64_t n)
{
    return ceil_div(n, TILE_K) * 2;
}

/* a: tile (row/16, column/32) is number row/16 * tiles_of(columns)/2 + column/32. */
void VEC(pack_rows)(void *to, const struct pack_source *s);
/* b: tile (row/16, column/32) is number row/16 * tiles_of(columns)/2 + column/32. */
void VEC(pack_transposed)(void *to, const struct pack_source *s);
/* b: tile (row/32, column/16) is number row/32 * tiles_of(columns) + column/16. */
void VEC(pack_paired)(void *to, const struct pack_source *s);
/* a: tile (row/32, column/16) is number row/32 * tiles_of(columns) + column/16. */
void VEC(pack_paired_transposed)(void *to, const struct pack_source *s);

/* The destination of a head of y or of a gradient. */
struct pack_target {
    bf16 *at;
    int64_t stride, rows, columns;
};
/* Tile (r, c) of `from` is number r * tiles_of(columns) + c; row i is multiplied by factor[i]. */
void VEC(unpack_rows)(const struct pack_target *t, const float *from, const float *factor);
/* Writes transposed tiles to the rows of t, multiplied by `factor`: tile (column/16, row/16) is
 * number column/16 * tiles_across + row/16, and its row i has column i of 16 rows. In each block of
 * 32 rows, lane `lane` of tile `half` is row pack_row_of(half, lane). */
void VEC(unpack_transposed)(const struct pack_target *t, const float *from, int64_t tiles_across,
                            float factor);

/* The row (0 ... 31) that is in lane `lane` of tile `half`: _mm512_unpacklo_epi16 and
 * _mm512_unpackhi_epi16 put the first 4 of every 8 rows into tile 0 and the last 4 into tile 1. */
INLINE int pack_row_of(int half, int lane)
{
    return lane / 4 * 8 + half * 4 + lane % 4;
}

#endif
