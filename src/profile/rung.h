/* rung.h - what the next change of the ladder would make of a step's kernels, seen in its plan. */
#ifndef PROFILE_RUNG_H
#define PROFILE_RUNG_H

#include "profile/profile.h"

enum { RUNG_OPS = 6 };

struct rung_op {
    enum op op;
    int runs; /* in a step */
    double ms;
};

struct rung {
    const char *name, *differs; /* "flash", "--flash=true"; NULL: there is none above */
    const char *reason;         /* why the one that comes next cannot be had here; NULL: it can */
    const char *idle; /* where none can be next: those that would change no kernel; NULL: none */
    /* Kernels of a step that the next plan does not have, and their time; those that it has and this one has not;
     * those that stay, but on other types. */
    int gone, come, stay, retyped;
    double gone_ms, retyped_ms;
    /* Of those on other types: products with another peak, and how much shorter these are at most, by the ratio of the peaks. */
    double products_ms, gain_ms;
    struct rung_op gone_op[RUNG_OPS], come_op[RUNG_OPS]; /* by time, by runs; the first of them */
    int gone_ops, come_ops;
};

/* Plans the next rung above the profile's configuration; nothing is run. */
void rung_find(const struct profile *p, struct rung *ret, struct arena *a);

#endif
