/* load.h - how busy other programs kept the processors during a measurement, and a warning. */
#ifndef BASE_LOAD_H
#define BASE_LOAD_H

#include "base/host.h"

struct load {
    struct host_work work;
    int64_t start_ns;
};
/* 0.1: measured times are doubtful if other programs used a larger share of all processors. */
extern const double LOAD_BUSY;
/* Whether `processors` busy processors (NAN: unknown) are a larger share than LOAD_BUSY. */
bool load_is_busy(double processors);
struct load load_start(void);
/* Share of all processors, 0 to 1, that other programs used since load_start; NAN: unknown, for
 * example if that is less than half a second ago. */
double load_others(const struct load *l);
/* "other programs took 75 % of the 2 processors meanwhile: ..."; NULL if share <= LOAD_BUSY. */
enum { LOAD_WORDS = 160 };
const char *load_words(double share, char buffer[LOAD_WORDS]);
/* Logs these words as a warning. */
void load_warn(double share);

#endif
