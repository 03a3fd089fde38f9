/* 01_rows.c - reads row by row and writes down columns.
 *
 * The reads are in order. Each write goes to another row of the result, so to another cache line
 * and, if the rows are long, to another page. With 4096 columns, one row of the source writes to
 * 4096 lines. These lines leave L1, and their address translations leave the TLB, before the next
 * row of the source writes to the lines again. */
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
