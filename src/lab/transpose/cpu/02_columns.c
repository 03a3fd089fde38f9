/* 02_columns.c - the loops exchanged: reads down columns and writes row by row.
 *
 * Now the writes are in order and the reads jump. This is often better: a processor can have many
 * cache misses of loads under way at once, and a store that misses must read its line anyway. But
 * the loop still uses only 4 of the 64 bytes of a line before it goes to the next line. */
#include "lab/cpu.h"

RUNG(transpose_columns)
{
    const float *from = c->in[0];
    float *to = c->out;
    int64_t rows = c->n[0], columns = c->n[1];
    for (int64_t column = 0; column < columns; column++)
        for (int64_t row = 0; row < rows; row++)
            to[column * rows + row] = from[row * columns + column];
}
