#include "base/floor.h"

#include <math.h>

double floor_copy_rate(const struct ceilings *c, double bytes)
{
    const double *x = c->copy_bytes, *rate = c->copy_rate;
    double at = bytes / c->threads;
    if (!c->copies || at <= x[0]) return c->copies ? rate[0] : 0;
    for (int i = 1; i < c->copies; i++)
        if (at <= x[i])
            return rate[i - 1] +
                   log(at / x[i - 1]) / log(x[i] / x[i - 1]) * (rate[i] - rate[i - 1]);
    return rate[c->copies - 1];
}

struct floor floor_of(const struct ceilings *c, double peak, double flops, double bytes, double ms)
{
    struct floor f = {.compute_ms = peak > 0 ? 1e3 * flops / peak : 0};
    if (c->copies) {
        double fastest = 0;
        double rate = c->gpu ? c->copy_rate[c->copies - 1] : floor_copy_rate(c, bytes);
        for (int i = 0; i < c->copies; i++) fastest = fmax(fastest, c->copy_rate[i]);
        f.memory_ms = 1e3 * bytes / rate;
        if (ms < f.memory_ms) f.memory_ms = fmax(ms, 1e3 * bytes / fastest);
    }
    f.ms = fmax(f.compute_ms, f.memory_ms);
    return f;
}
