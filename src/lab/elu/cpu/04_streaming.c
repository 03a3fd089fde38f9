/* 04_streaming.c - stores that bypass the caches.
 *
 * A normal store reads the line first; a streaming store does not, so 8 bytes move for each element
 * instead of 12. This helps only if memory is the limit and not the arithmetic. */
#include "lab/elu/cpu/elu.h"

RUNG(elu_streaming)
{
    const float *x = c->in[0];
    float *y = c->out;
    int64_t n = c->n[0], i = 0;
    if ((uintptr_t)y % sizeof(vf) == 0)
        for (; i + W <= n; i += W) vf_stream(y + i, vf_elu(vf_load(x + i)));
    for (; i + W <= n; i += W) vf_store(y + i, vf_elu(vf_load(x + i)));
    if (i < n) elu_rest(y + i, x + i, n - i);
    vf_stream_end();
}
