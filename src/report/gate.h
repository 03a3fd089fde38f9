/* gate.h - a report as a check for regressions: `strobe report --baseline=A B` (docs/MEASURING.md).
 *
 * Each run and profile after the first is held against the first: its speed by the rule of
 * base/verdict.h, and its planned memory, which is exact. Slower, or more memory by more than the
 * smallest difference with a name, is a regression, and so is a loss that became NaN; "cannot tell"
 * is none, but it is said. */
#ifndef REPORT_GATE_H
#define REPORT_GATE_H

#include "report/changes.h"
#include "report/compare.h"

struct markup;
struct json_t;

enum gate_outcome { GATE_PASSED, GATE_UNCERTAIN, GATE_REGRESSION };
/* "passed", "cannot tell", "regression" */
const char *gate_outcome_name(enum gate_outcome outcome);

struct gate_case {
    const char *subject; /* the run or profile */
    const char *what;    /* "speed", "memory", "profiled step", "end" */
    enum gate_outcome outcome;
    const char *text; /* a sentence */
};

struct gate {
    const char *baseline;
    struct gate_case *one;
    int n;
    enum gate_outcome outcome; /* the worst; uncertain only if a speed is and none regressed */
};

/* `change`: of each profile after the first. n = 0: nothing to hold against the baseline. */
struct gate gate_of(const struct comparison *runs, const struct changes *change, int changes,
                    struct arena *a);
struct json_t *gate_json(const struct gate *g);
/* JUnit XML, as continuous integration reads it: a regression is a failure, "cannot tell" a skipped
 * test. */
void gate_junit(const struct gate *g, struct markup *m);

#endif
