/* 05_streaming.c - whole lines of the result, streamed.
 *
 * A block of 16 rows and W columns becomes W lines of 64 bytes of the result. The lines are put
 * together in a small buffer and written by streaming stores. So no line is read before it is
 * written, and no half-written line waits in a cache, where lines that are a power of two apart
 * compete for the few places of one set. The source is read along 16 rows at once, in order, so the
 * processor prefetches it. */
#include "lab/transpose/cpu/vectors.h"

RUNG(transpose_streaming)
{
    int64_t rows = c->n[0];
    for (int64_t i = 0; i < rows; i += LINE)
        transpose_lines(c, i, i + LINE < rows ? i + LINE : rows);
}
