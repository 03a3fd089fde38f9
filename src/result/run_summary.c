#include "result/run_summary.h"

#include <math.h>
#include <stdio.h>

/* clang-format off */
#define S struct gauge_range
RECORD(range, F(REAL, "mean", mean), F(REAL, "min", min), F(REAL, "max", max));
#undef S

#define S struct gauge_summary
#define RANGE(key, v) F(ONE, key, value[v], .of = &range_record)
RECORD(gauges, F(INT, "samples", samples), F(REAL, "sample_ms", sample_ms),
       F(REAL, "seconds", seconds), F(REAL, "clock_max_mhz", clock_max_mhz),
       F(REAL, "power_limit_w", power_limit_w), F(REAL, "energy_j", energy_j),
       F(REAL, "joules_per_token", joules_per_token), F(REAL, "throttled", throttled),
       F(FIGURES, "throttled_by", by, N(reasons), .most = GAUGE_REASONS),
       F(REAL, "others", others), GAUGE_FIELDS(RANGE));
#undef S

#define S struct run_summary
#define SECONDS(key, part) F(REAL, key, wall_s[part])
RECORD(wall, WALL_FIELDS(SECONDS));
RECORD(summary, F(COUNT, "iters", iters), F(FLAG, "complete", complete), F(TEXT, "end", end),
       F(TEXT, "why", why), F(REAL, "seconds", seconds), F(REAL, "ms_median", ms_median),
       F(REAL, "ms_std", ms_std), F(REAL, "tokens_per_s", tokens_per_s), F(REAL, "mfu", mfu),
       F(REAL, "run_tokens_per_s", run_tokens_per_s), F(REAL, "run_mfu", run_mfu),
       F(REAL, "final_train_loss", final_train_loss), F(REAL, "final_val_loss", final_val_loss),
       F(REAL, "best_val_loss", best_val_loss), F(COUNT, "best_iter", best_iter),
       F(REAL, "others_busy", others_busy), F(WHOLE, "peak_measured", peak_measured),
       F(WHOLE, "peak_rss", peak_rss), F(ONE, "gauges", gauges, .of = &gauges_record),
       PART("wall_s", wall));
#undef S
/* clang-format on */

const struct record *const run_summary_record = &summary_record;

const char *run_summary_wall(const struct run_summary *s, char buffer[WALL_TEXT])
{
    double all = 0;
    int used;
    for (int i = 0; i < WALL_PARTS; i++) all += s->wall_s[i] > 0 ? s->wall_s[i] : 0;
    buffer[0] = '\0';
    used = all > 0 ? snprintf(buffer, WALL_TEXT, "%.1f s =", all) : 0;
    for (int i = 0; i < WALL_PARTS && used; i++) {
        if (isnan(s->wall_s[i]) || (i == WALL_TURNS && !(s->wall_s[i] > 0))) continue;
        used += snprintf(buffer + used, (size_t)(WALL_TEXT - used), "%s %s %.1f", i ? " +" : "",
                         wall_fields[i].name, s->wall_s[i]);
    }
    return buffer;
}
