/* 05_streaming.c - stores that bypass the caches.
 *
 * A normal store first reads the line that it writes to, because the processor does not know that
 * the rest of the line will be overwritten as well. So a copy reads two streams and writes one:
 * three bytes move for every two that are needed. A streaming store promises to fill the line, so
 * the line is not read. This pays only if the destination is too large for the caches, because its
 * data is not in a cache afterwards. */
#include "lab/cpu.h"

RUNG(copy_streaming)
{
    const float *from = c->in[0];
    float *to = c->out;
    int64_t n = c->n[0], i = 0;
    for (; i < n && (uintptr_t)(to + i) % sizeof(vf); i++) to[i] = from[i];
    for (; i + W <= n; i += W) vf_stream(to + i, vf_load(from + i));
    for (; i < n; i++) to[i] = from[i];
    vf_stream_end();
}
