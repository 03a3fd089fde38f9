/* 04_streaming.c - stores that pass the caches by.
 *
 * A store to a line that no cache has reads the line first. The result of a row is whole lines, and
 * no one reads them soon, so they are stored around the caches: two bytes move for each float read
 * and written instead of three. */
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
