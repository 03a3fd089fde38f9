/* rung.h - how the next rung of the ladder would change the kernels of a step, from its plan. */
#ifndef PROFILE_RUNG_H
#define PROFILE_RUNG_H

#include "profile/profile.h"

enum { RUNG_OPS = 6 };

struct rung_op {
    enum op op;
    int runs; /* per step */
    double ms;
};

struct rung {
    const char *name, *differs; /* "flash", "--flash=true"; NULL: no rung left */
    const char *reason;         /* why that rung is not available here; NULL: it is */
    const char *idle; /* rungs that would change no kernel, if no other is left; NULL: none */
    /* Kernels per step: removed by the next plan, added, kept, kept on other types (included in
     * none of the others); times of the first and the last. */
    int gone, come, stay, retyped;
    double gone_ms, retyped_ms;
    /* Matmuls among the retyped whose peak rises; the most they save by the ratio of the peaks. */
    double matmuls_ms, gain_ms;
    struct rung_op gone_op[RUNG_OPS], come_op[RUNG_OPS]; /* the first ones, by time and by runs */
    int gone_ops, come_ops;
};

/* Plans the next rung above the profile's configuration; runs nothing. */
void rung_find(const struct profile *p, struct rung *ret, struct arena *a);

#endif
