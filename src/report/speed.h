/* speed.h - what the times of two runs say about their speed, by the rule of base/verdict.h.
 *
 * Speeds are per token. Runs that took turns with each other (`strobe compare`) have pairs: the
 * medians of turns of one number. Other runs were measured apart. */
#ifndef REPORT_SPEED_H
#define REPORT_SPEED_H

#include "base/verdict.h"
#include "report/runs.h"

enum speed_how {
    SPEED_UNKNOWN,   /* too few steps, or no times */
    SPEED_SAME_WORK, /* equal plans on the same machine and program: no verdict */
    SPEED_BUSY,      /* apart, and other programs used the machine: no verdict */
    SPEED_APART,
    SPEED_IN_TURNS
};

struct speed {
    enum speed_how how;
    struct verdict verdict; /* of SPEED_APART and SPEED_IN_TURNS */
    double others;          /* SPEED_BUSY: the larger share of the processors */
};

/* Times are doubtful if other programs use a larger share of the processors. */
extern const double SPEED_BUSY_SHARE;

struct speed speed_of(const struct run *first, const struct run *r, struct arena *a);
/* "is 1.25 times as fast as NAME (1.20 to 1.30, in 40 turns)"; NULL for SPEED_UNKNOWN. */
const char *speed_words(const struct speed *s, const char *first, struct arena *a);
/* For a table: "1.25 x", "same", "cannot tell", "same plan"; NULL: unknown. */
const char *speed_cell(const struct speed *s, struct arena *a);

#endif
