#include "backend/sample.h"

const struct device_sample sample_unknown = {-1, -1, -1, -1, -1, -1, -1, -1,
                                             -1, -1, -1, -1, -1, -1, 0};

const char *throttle_name(enum throttle t)
{
    static const char *const names[THROTTLE_COUNT] = {
        [THROTTLE_POWER] = "power limit", [THROTTLE_HEAT] = "heat",
        [THROTTLE_BRAKE] = "power brake", [THROTTLE_HARDWARE] = "hardware slowdown",
        [THROTTLE_SYNC] = "sync boost",   [THROTTLE_USER] = "set clock",
    };
    return names[t];
}

bool throttle_slows(int reasons)
{
    return reasons > 0 && reasons & ~(1 << THROTTLE_USER);
}
