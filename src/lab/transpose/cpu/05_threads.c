/* 05_threads.c - each thread transposes a band of columns.
 *
 * The bands become rows of the result, so each thread writes memory of its own, and no line is
 * written by two threads. */
#include "lab/transpose/cpu/vectors.h"

enum { BAND = 32 }; /* columns; a multiple of every W, so that blocks are whole */

RUNG(transpose_threads)
{
    int64_t columns = c->n[1];
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t j = 0; j < columns; j += BAND)
        transpose_columns_of(c, j, j + BAND < columns ? j + BAND : columns);
}
