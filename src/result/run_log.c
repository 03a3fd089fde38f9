#include "result/run_log.h"

#include "base/record.h"

/* Nine digits represent a float exactly. */
#define R(key, member)     F(REAL, key, member, .digits = 9)
#define SHARE(key, member) F(REAL, key, member, .digits = 4, .sparse = true)

/* clang-format off */
#define S struct run_step
RECORD(step, F(COUNT, "iter", iter), R("loss", loss), R("lr", lr), R("grad_norm", grad_norm),
       R("ms", ms), R("tokens_per_s", tokens_per_s), SHARE("mfu", mfu),
       SHARE("plan_flops", plan_flops), SHARE("plan_bytes", plan_bytes));
#undef S
#define S struct run_eval
RECORD(eval, F(COUNT, "iter", iter), R("train_loss", train_loss), R("val_loss", val_loss));
#undef S
#define S struct run_turn
RECORD(turn, F(COUNT, "iter", iter), F(WHOLE, "of", of), F(WHOLE, "turn", turn),
       F(WHOLE, "iters", iters), R("ms", ms));
#undef S
#define S struct run_wall
#define SECONDS(key, part) R(key, seconds[part])
RECORD(wall, F(COUNT, "iter", iter), WALL_FIELDS(SECONDS));
#undef S
#define S struct gauge_reading
#define KNOWN(key, member) F(REAL, key, member, .digits = 6, .sparse = true)
#define VALUE(key, v)      F(REAL, key, value[v], .digits = v == GAUGE_MEMORY ? 15 : 6, .sparse = true)
RECORD(reading, F(COUNT, "iter", iter), F(REAL, "ms", ms, .digits = 7), F(FLAG, "steady", steady),
       GAUGE_FIELDS(VALUE), KNOWN("clock_max_mhz", clock_max_mhz),
       KNOWN("power_limit_w", power_limit_w), KNOWN("throttled", throttled));
#undef S
/* clang-format on */

const struct record *const run_step_record = &step_record, *const run_eval_record = &eval_record,
                           *const run_turn_record = &turn_record,
                           *const run_wall_record = &wall_record,
                           *const gauge_reading_record = &reading_record;
