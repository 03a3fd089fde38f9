/* changes.h - compares two profiles: which kernels vanished, which are new, which became faster.
 *
 * A place is the position of a row in the model without its block number: "forward / block /
 * attention / scores". Rows of one place and one kernel are one line. Lines that both profiles
 * have are compared; so are lines of only one of them, if the other has a kernel of the same
 * family in that place. The lines add up to the difference of the step times. */
#ifndef REPORT_CHANGES_H
#define REPORT_CHANGES_H

#include "base/judge.h"
#include "present/table.h"
#include "result/profile_file.h"

enum change_kind {
    CHANGE_VANISHED, /* only before */
    CHANGE_CAME,     /* only after */
    CHANGE_REPLACED, /* the same place, another kernel */
    CHANGE_KEPT,     /* the same kernel, another time */
    CHANGE_KINDS
};
/* "vanished", "came", "other kernel", "same kernel" */
const char *change_kind_name(enum change_kind kind);

struct change_side {
    const char *kernel;  /* "SOFTMAX 12 x 1024 and 2 more"; NULL: none */
    double ms;           /* per step */
    double per_step;     /* executions per step */
    const double *chunk; /* ms of each chunk of the profile; NULL: unknown */
};

struct change {
    enum change_kind kind;
    const char *place;
    int family;
    struct change_side before, after;
    struct verdict verdict; /* VERDICT_NONE: only one has it, or the times of chunks are unknown */
};

struct changes {
    const struct profile_file *before, *after;
    struct change *change; /* largest effect first */
    int n;
    double before_ms, after_ms; /* mean step times */
    /* The speed of steps without profiling. JUDGED_SAME_PLAN: equal plans. */
    struct judgement speed;
    double kind_ms[CHANGE_KINDS];
    int kind_n[CHANGE_KINDS];
};

void changes_find(const struct profile_file *before, const struct profile_file *after,
                  struct arena *a, struct changes *ret_changes);
/* The changes in a sentence. */
const char *changes_words(const struct changes *c, struct arena *a);
/* The `most` largest changes (0: all), and lines for the sum of the others and for the step. */
struct table changes_table(const struct changes *c, int most, struct arena *a);

#endif
