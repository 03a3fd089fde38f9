/* 05_streaming.c - whole lines of the result, streamed.
 *
 * A block of 16 rows and W columns becomes W lines of 64 bytes of the result. They are put together
 * in a small buffer and leave as streaming stores: no line is read before it is written, and none
 * waits in a cache for its other half, where lines that lie a power of two apart compete for a few
 * places. The source is read along 16 rows at once, in order, which the processor fetches ahead. */
#include "lab/transpose/cpu/vectors.h"

RUNG(transpose_streaming)
{
    int64_t rows = c->n[0];
    for (int64_t i = 0; i < rows; i += LINE)
        transpose_lines(c, i, i + LINE < rows ? i + LINE : rows);
}
