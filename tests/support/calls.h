/* calls.h - hand-made kernel calls, for tests of one kernel row at a time. */
#ifndef SUPPORT_CALLS_H
#define SUPPORT_CALLS_H

#include "backend/kernel.h"
#include "base/arena.h"

struct backend;

struct hand_call {
    struct arena arena;
    union attr attr;
    struct kernel_call call;
};

/* f32 inputs hold numbers between -1 and 1, the same each time; i32 inputs count 0, 1, 2, 0, 1
 * ... */
void call_input(struct hand_call *h, struct type type);
void call_output(struct hand_call *h, struct type type);
/* The n-th CPU row that accepts the call and is not the reference; NULL: there are no more. */
const struct kernel *call_row(const struct hand_call *h, enum op op, int n);
/* Fills the outputs with NaN, then prepares, runs and releases the row; a failure fails the test
 * with its message. */
void call_run(struct hand_call *h, const struct kernel *row);
/* Zeroes `h` for the next call. */
void call_release(struct hand_call *h);

float *call_in(const struct hand_call *h, int i);
float *call_out(const struct hand_call *h, int i);
int64_t call_out_bytes(const struct hand_call *h, int i);

#endif
