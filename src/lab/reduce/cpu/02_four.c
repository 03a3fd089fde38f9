/* 02_four.c - four sums that do not wait for each other.
 *
 * While one addition is under way, three others can start: four chains of additions overlap. The
 * order of additions differs, so the last digits may differ. In general the error shrinks, because
 * partial sums stay smaller. */
#include "lab/cpu.h"

RUNG(reduce_four)
{
    const float *x = c->in[0];
    float sum[4] = {0};
    int64_t n = c->n[0], i = 0;
    for (; i + 4 <= n; i += 4) {
        AS_WRITTEN;
        for (int k = 0; k < 4; k++) sum[k] += x[i + k];
    }
    for (; i < n; i++) sum[0] += x[i];
    *(float *)c->out = (sum[0] + sum[1]) + (sum[2] + sum[3]);
}
