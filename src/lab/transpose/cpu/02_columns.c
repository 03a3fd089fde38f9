/* 02_columns.c - the loops exchanged: reads down columns and writes row by row.
 *
 * Now the writes are in order and the reads jump. That is often the better half: a load that misses
 * is one of many that the processor has under way at once, and a line that is written must be read
 * first anyway. But it still uses 4 of the 64 bytes of each line that it fetches. */
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
