#include "report/gauges.h"

#include "base/json.h"
#include "base/lenient.h"
#include "base/record.h"

#include <math.h>
#include <string.h>

void gauges_init(struct gauges *g)
{
    *g = (struct gauges){.clock_max_mhz = NAN, .power_limit_w = NAN};
    g->figures = (struct gauge_figures){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NULL};
}

static void remember(double *last, double x)
{
    if (isfinite(x)) *last = x;
}

/* clang-format off */
#define S struct gauge_point
RECORD(point, F(REAL, "ms", ms), F(FLAG, "steady", steady), F(REAL, "utilization", utilization),
       F(REAL, "clock_mhz", clock_mhz), F(REAL, "power_w", power_w),
       F(REAL, "memory_bytes", memory_bytes), F(REAL, "memory_utilization", memory_utilization),
       F(REAL, "sm_active", sm_active), F(REAL, "tensor_active", tensor_active),
       F(REAL, "dram_active", dram_active), F(REAL, "throttled", throttled));
#undef S
/* clang-format on */

void gauges_take(struct gauges *g, const json_t *line, int64_t iter, struct arena *a)
{
    struct gauge_point p = {.iter = iter};
    record_take(&point_record, line, &p, a);
    if (!(p.ms > 0)) return;
    while (g->points && g->point[g->points - 1].iter > iter)
        g->points--; /* a resumed run repeats it */
    p.seconds = (g->points ? g->point[g->points - 1].seconds : 0) + p.ms * 1e-3;
    ARENA_GROW(a, g->point, g->points, g->capacity);
    g->point[g->points++] = p;
    remember(&g->clock_max_mhz, lenient_number(line, "clock_max_mhz"));
    remember(&g->power_limit_w, lenient_number(line, "power_limit_w"));
}

static double value_at(const struct gauges *g, size_t member, int i)
{
    return *(const double *)((const char *)&g->point[i] + member);
}

/* The mean over time of the first steady points. */
static double mean(const struct gauges *g, size_t member, int points)
{
    double sum = 0, ms = 0;
    for (int i = 0; i < points; i++) {
        double x = value_at(g, member, i);
        if (!isfinite(x) || !g->point[i].steady) continue;
        sum += x * g->point[i].ms;
        ms += g->point[i].ms;
    }
    return ms > 0 ? sum / ms : NAN;
}

/* What lowered the clock, according to the summary; a clock set by the user does not count. */
static const char *reasons(json_t *by, struct arena *a)
{
    const char *text = NULL, *key;
    json_t *part;
    json_object_foreach(by, key, part) {
        if (!strcmp(key, "set clock")) continue;
        text = text ? arena_printf(a, "%s, %s", text, key) : arena_strdup(a, key);
    }
    return text;
}

void gauges_conclude(struct gauges *g, const json_t *summary, struct arena *a)
{
    int points = json_is_null(summary) ? 0 : g->points; /* null: they were too few */
#define MEAN(name)                                             \
    lenient_number_or(json_object_get(summary, #name), "mean", \
                      mean(g, offsetof(struct gauge_point, name), points))
    g->figures = (struct gauge_figures){
        .utilization = MEAN(utilization),
        .clock_mhz = MEAN(clock_mhz),
        .power_w = MEAN(power_w),
        .memory_utilization = MEAN(memory_utilization),
        .sm_active = MEAN(sm_active),
        .tensor_active = MEAN(tensor_active),
        .dram_active = MEAN(dram_active),
        .joules_per_token = lenient_number(summary, "joules_per_token"),
        .throttled = lenient_number_or(summary, "throttled",
                                       mean(g, offsetof(struct gauge_point, throttled), points)),
        .others = lenient_number(summary, "others"),
        .throttled_by = reasons(json_object_get(summary, "throttled_by"), a),
    };
#undef MEAN
}

json_t *gauges_json(const struct gauges *g)
{
    static const struct {
        const char *name;
        size_t offset;
    } column[] = {
        {"utilization", offsetof(struct gauge_point, utilization)},
        {"clock", offsetof(struct gauge_point, clock_mhz)},
        {"power", offsetof(struct gauge_point, power_w)},
        {"memory", offsetof(struct gauge_point, memory_bytes)},
        {"memory_utilization", offsetof(struct gauge_point, memory_utilization)},
        {"sm", offsetof(struct gauge_point, sm_active)},
        {"tensor", offsetof(struct gauge_point, tensor_active)},
        {"dram", offsetof(struct gauge_point, dram_active)},
        {"throttled", offsetof(struct gauge_point, throttled)},
        {"seconds", offsetof(struct gauge_point, seconds)},
    };
    json_t *o = json_object(), *iter = json_array();
    for (int i = 0; i < g->points; i++) json_array_append_new(iter, json_integer(g->point[i].iter));
    json_object_set_new(o, "iter", iter);
    for (int c = 0; c < COUNT_OF(column); c++) {
        json_t *list = json_array();
        for (int i = 0; i < g->points; i++)
            json_array_append_new(list, number_or_null(value_at(g, column[c].offset, i)));
        json_object_set_new(o, column[c].name, list);
    }
    json_object_set_new(o, "clock_max", number_or_null(g->clock_max_mhz));
    json_object_set_new(o, "power_limit", number_or_null(g->power_limit_w));
    return o;
}
