/* 04_streaming.c - stores that bypass the caches.
 *
 * A normal store reads the line first if no cache has the line. The result of a row fills whole
 * lines that are not read soon, so streaming stores can write them: 8 bytes move per element
 * instead of 12. */
#include "lab/layernorm/cpu/row.h"

RUNG(layernorm_streaming)
{
    int64_t columns = c->n[1];
    const float *weight = c->in[1];
    for (int64_t i = 0; i < c->n[0]; i++)
        layernorm_row((float *)c->out + i * columns, (const float *)c->in[0] + i * columns, weight,
                      weight + columns, columns, true);
    vf_stream_end();
}
