#include "report/gauges.h"

#include "base/json.h"

#include <math.h>

static void remember(double *last, double x)
{
    if (isfinite(x)) *last = x;
}

void gauges_take(struct gauges *g, const json_t *line, int64_t iter, struct arena *a)
{
    struct gauge_reading p = {0};
    record_take(gauge_reading_record, line, &p, a);
    if (!g->points) g->clock_max_mhz = g->power_limit_w = NAN;
    if (!(p.ms > 0)) return;
    while (g->points && g->point[g->points - 1].iter > iter)
        g->points--; /* a resumed run repeats it */
    p.seconds = (g->points ? g->point[g->points - 1].seconds : 0) + p.ms * 1e-3;
    ARENA_GROW(a, g->point, g->points, g->capacity);
    g->point[g->points++] = p;
    remember(&g->clock_max_mhz, p.clock_max_mhz);
    remember(&g->power_limit_w, p.power_limit_w);
}

/* `at`: offset of a number in a reading. Sets the mean over time of the steady ones. */
static void fill(const struct gauges *g, size_t at, double *to)
{
    double sum = 0, ms = 0;
    for (int i = 0; i < g->points && isnan(*to); i++) {
        double x = *(const double *)((const char *)&g->point[i] + at);
        if (!isfinite(x) || !g->point[i].steady) continue;
        sum += x * g->point[i].ms;
        ms += g->point[i].ms;
    }
    if (ms > 0) *to = sum / ms;
}

void gauges_fill(const struct gauges *g, struct gauge_summary *to)
{
    for (size_t i = 0; i < GAUGE_VALUES; i++)
        fill(g, offsetof(struct gauge_reading, value) + i * sizeof(double), &to->value[i].mean);
    fill(g, offsetof(struct gauge_reading, throttled), &to->throttled);
}

json_t *gauges_json(const struct gauges *g)
{
    json_t *o = record_columns(gauge_reading_record, g->point, g->points), *seconds = json_array();
    for (int i = 0; i < g->points; i++)
        json_array_append_new(seconds, number_or_null(g->point[i].seconds));
    json_object_set_new(o, "seconds", seconds);
    json_object_set_new(o, "clock_max", number_or_null(g->points ? g->clock_max_mhz : NAN));
    json_object_set_new(o, "power_limit", number_or_null(g->points ? g->power_limit_w : NAN));
    return o;
}
