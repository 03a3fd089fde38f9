/* 03_blocked.c - blocks of 16 x 16, which are lines on both sides.
 *
 * A block is 16 lines of 64 bytes of the source and 16 lines of the result: 2 KiB, which stay in L1
 * until every byte has been used. So each line moves from memory and back only once. The remaining
 * cost is one load and one store for every 4 bytes. */
#include "lab/cpu.h"

enum { BLOCK = 16 };

RUNG(transpose_blocked)
{
    const float *from = c->in[0];
    float *to = c->out;
    int64_t rows = c->n[0], columns = c->n[1];
    for (int64_t column = 0; column < columns; column += BLOCK)
        for (int64_t row = 0; row < rows; row += BLOCK)
            for (int64_t j = column; j < column + BLOCK && j < columns; j++)
                for (int64_t i = row; i < row + BLOCK && i < rows; i++)
                    to[j * rows + i] = from[i * columns + j];
}
