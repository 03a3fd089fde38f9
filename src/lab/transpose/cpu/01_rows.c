/* 01_rows.c - reads row by row and writes down columns.
 *
 * The reads are in order. Each write goes to another row of the result, and so to another cache
 * line and another page: with 4096 rows, the lines that are written to in one row of the source,
 * and their translations, no longer fit in the first caches before their neighbours are written. */
#include "lab/cpu.h"

RUNG(transpose_rows)
{
    const float *from = c->in[0];
    float *to = c->out;
    int64_t rows = c->n[0], columns = c->n[1];
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++)
            to[column * rows + row] = from[row * columns + column];
}
