/* pack.h - rows of a head of q, k, v or dy as tiles, and tiles of sums as such rows.
 *
 * A head is read and written where it lies, D numbers in each of rows that are far apart. Everything comes
 * out in blocks of 32 rows and 32 columns, two tiles each, padded with zeros:
 *
 *   lines         a  sum over columns: as they lie
 *   turned        b  sum over columns: line i has the pair of columns 2i, 2i+1 of each of 16 rows
 *   paired        b  sum over rows: line i has the rows 2i, 2i+1 of each of 16 columns
 *   paired_turned a  sum over rows: line i has column i of 32 rows */
#ifndef BACKEND_CPU_BF16_PACK_H
#define BACKEND_CPU_BF16_PACK_H

#include "backend/cpu/bf16/tile.h"

struct pack_source {
    const bf16 *at;
    int64_t stride, rows, columns; /* in numbers */
};

/* Tiles of `columns` numbers, always even. */
INLINE int64_t tiles_of(int64_t n)
{
    return ceil_div(n, DEEP) * 2;
}

/* a: tile (row/16, column/32) is number row/16 * tiles_of(columns)/2 + column/32. */
void VEC(pack_lines)(void *to, const struct pack_source *s);
/* b: tile (row/16, column/32) is number row/16 * tiles_of(columns)/2 + column/32. */
void VEC(pack_turned)(void *to, const struct pack_source *s);
/* b: tile (row/32, column/16) is number row/32 * tiles_of(columns) + column/16. */
void VEC(pack_paired)(void *to, const struct pack_source *s);
/* a: tile (row/32, column/16) is number row/32 * tiles_of(columns) + column/16. */
void VEC(pack_paired_turned)(void *to, const struct pack_source *s);

/* Where a head of y or of a gradient is written. */
struct pack_target {
    bf16 *at;
    int64_t stride, rows, columns;
};
/* Tile (row/16, column/16) of `from` is number row/16 * tiles_of(columns) + column/16; each row is
 * multiplied by its factor. */
void VEC(unpack_lines)(const struct pack_target *t, const float *from, const float *factor);
/* Tile (column/16, row/16) is number column/16 * across + row/16: line i has column i of 16 rows. In each
 * block of 32 rows, column `lane` of tile `half` is row pack_row_of(half, lane). */
void VEC(unpack_turned)(const struct pack_target *t, const float *from, int64_t across,
                        float factor);

/* Which of 32 rows comes to lie in a lane of one of two tiles whose lines were woven from 32 neighbours by
 * unpacking low and high words, as pack_weave does: in each eight of the 32, the first four go to tile 0. */
INLINE int pack_row_of(int half, int lane)
{
    return lane / 4 * 8 + half * 4 + lane % 4;
}

#endif
