/* changes.h - two profiles beside each other: which kernels vanished, which came, which became faster.
 *
 * A place is where a row stands in the model, without the number of its block: "forward / block /
 * attention / scores". Rows of one place and one kernel are one line. What both have is held against
 * each other; what only one has, too, where the other has something of the same family there. The lines
 * add up to the difference of the steps. */
#ifndef REPORT_CHANGES_H
#define REPORT_CHANGES_H

#include "present/table.h"
#include "report/profile_file.h"

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
    const char *kernel; /* "SOFTMAX 12 x 1024 and 2 more"; NULL: nothing is there */
    double ms;          /* of a step */
    double per_step;    /* executions */
    double std;         /* of `ms`, over the steps, at most; NAN: unknown */
};

struct change {
    enum change_kind kind;
    const char *place;
    int family;
    struct change_side before, after;
};
/* Whether the difference is no more than what the line varies by from step to step. */
bool change_is_noise(const struct change *c);

struct changes {
    const struct profile_file *before, *after;
    struct change *change; /* largest effect first */
    int n;
    double before_ms, after_ms; /* of the steps, the means */
    double kind_ms[CHANGE_KINDS];
    double noise_ms; /* the part of it that is within the noise */
    int kind_n[CHANGE_KINDS];
};

void changes_find(const struct profile_file *before, const struct profile_file *after,
                  struct arena *a, struct changes *ret_changes);
/* In a sentence. */
const char *changes_words(const struct changes *c, struct arena *a);
/* The `most` largest, and a line for what they leave out and one for the sum; 0: all. */
struct table changes_table(const struct changes *c, int most, struct arena *a);

#endif
