/* load.h - what other programs did to the processors while something was measured, in a warning. */
#ifndef BASE_LOAD_H
#define BASE_LOAD_H

#include "base/host.h"

struct load {
    struct host_work work;
    int64_t start_ns;
};
/* Times are doubtful if other programs use a larger share of all processors: 0.1. */
extern const double LOAD_BUSY;
/* Whether they did, by the number of processors that they kept busy; NAN: unknown. */
bool load_is_busy(double processors);
struct load load_start(void);
/* Share of all processors that other programs took since then, 0 to 1; NAN: unknown, as for less
 * than half a second. */
double load_others(const struct load *l);
/* "other programs took 75 % of the 2 processors meanwhile: ..." if the share exceeds LOAD_BUSY,
 * else NULL. The buffer belongs to the caller (LOAD_WORDS). */
enum { LOAD_WORDS = 160 };
const char *load_words(double share, char buffer[LOAD_WORDS]);
/* Logs these words as a warning. */
void load_warn(double share);

#endif
