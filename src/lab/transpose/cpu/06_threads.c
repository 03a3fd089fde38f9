/* 06_threads.c - each thread transposes bands of 16 rows.
 *
 * A band fills whole lines of the result, so no two threads write to the same line. */
#include "lab/transpose/cpu/vectors.h"

RUNG(transpose_threads)
{
    int64_t rows = c->n[0];
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < rows; i += LINE)
        transpose_lines(c, i, i + LINE < rows ? i + LINE : rows);
}
