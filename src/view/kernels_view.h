/* kernels_view.h - what `strobe bench kernels` prints: a row per kernel and call, and sums. */
#ifndef VIEW_KERNELS_VIEW_H
#define VIEW_KERNELS_VIEW_H

#include "bench/bench_kernels.h"
#include "present/table_form.h"

struct kernels_view {
    const struct bench_kernels *kernels;
    const struct machine *machine;
    const char *words; /* describes the configuration */
    bool whole;        /* all operators were timed, so the sums cover a step */
};

void kernels_view_print(const struct kernels_view *v, const struct table_form *form, struct str *s,
                        struct arena *a);

#endif
