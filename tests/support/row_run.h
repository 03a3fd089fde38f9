/* row_run.h - one row of a device's kernels, run as a plan would, where everything that it must not read or write would show:
 * tensors and scratch begin at multiples of 64 bytes, no more, in memory that is NaN before and behind them for 4 KiB, and what a
 * run has to write is NaN before. */
#ifndef SUPPORT_ROW_RUN_H
#define SUPPORT_ROW_RUN_H

#include "backend/backend.h"
#include "backend/kernel.h"

struct row_memory {
    void *all;
    char *at;
    int64_t bytes;
};

struct row_run {
    const struct backend *backend;
    const struct kernel *kernel;
    union attr attr;
    struct kernel_call call; /* types; attr is that of this struct, which must not move */
    struct row_memory in[MAX_IN], out[MAX_OUT], scratch;
};

/* The types of r->call and r->attr are set: takes the n-th row (of `variant`; NULL: of all) that fits, and prepares it. False:
 * there is none. */
bool row_find(struct row_run *r, enum op op, const char *variant, int n);
/* Memory for all of it; inputs are NaN until they are given. */
void row_open(struct row_run *r);
/* Undoes both. */
void row_close(struct row_run *r);
/* `from` (host) to input i, from byte `at` on. */
void row_give(struct row_run *r, int i, int64_t at, const void *from, int64_t bytes);
/* Output i, from byte `at` on. */
void row_take(struct row_run *r, int i, int64_t at, void *to, int64_t bytes);
/* Poisons, runs, waits. A failure ends the test with its words. */
void row_start(struct row_run *r);
/* NULL, or which tensor's surroundings were written to ("before output 1"). */
const char *row_trespass(struct row_run *r);

#endif
