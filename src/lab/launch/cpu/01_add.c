/* 01_add.c - adds 1 to each float, `additions` times, in whole vectors.
 *
 * The sums stay in registers. The loop works on four vectors at a time, because each addition to a
 * vector waits for the addition before. One call with 1000 additions is the fusion of 1000 calls
 * with one addition. */
#include "lab/cpu.h"

RUNG(launch_add)
{
    enum { TIMES = 4 };
    float *y = c->out;
    int64_t n = c->n[0], additions = c->n[1];
    for (int64_t i = 0; i < n; i += TIMES * W) {
        vf sum[TIMES];
        for (int t = 0; t < TIMES; t++) sum[t] = vf_load(y + i + t * W);
        for (int64_t k = 0; k < additions; k++)
            for (int t = 0; t < TIMES; t++) sum[t] += 1.0f;
        for (int t = 0; t < TIMES; t++) vf_store(y + i + t * W, sum[t]);
    }
}
