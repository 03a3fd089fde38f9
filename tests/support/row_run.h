/* row_run.h - runs one kernel row like a plan does, and finds forbidden reads and writes: tensors
 * and scratch are aligned to exactly 64 bytes, with 4 KiB of NaN before and after them, and outputs
 * and scratch are NaN before the run. */
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
    struct kernel_call call; /* types; attr points into this struct, which must not move */
    struct row_memory in[MAX_IN], out[MAX_OUT], scratch;
};

/* Selects and prepares the n-th row that accepts the call; of `variant` only, unless NULL. False if
 * there is none. The caller has set the types of r->call and r->attr. */
bool row_find(struct row_run *r, enum op op, const char *variant, int n);
/* Allocates memory for all tensors; inputs are NaN until they are set. */
void row_open(struct row_run *r);
/* Releases the row and its memory. */
void row_close(struct row_run *r);
/* Copies `from` (host) to input i, starting at byte `at`. */
void row_upload(struct row_run *r, int i, int64_t at, const void *from, int64_t bytes);
/* Copies output i to the host, starting at byte `at`. */
void row_download(struct row_run *r, int i, int64_t at, void *to, int64_t bytes);
/* Fills outputs and scratch with NaN, runs the row and waits. A failure ends the test. */
void row_start(struct row_run *r);
/* The place outside of the tensors that the row wrote to ("before output 1"); NULL: none. */
const char *row_stray_write(struct row_run *r);

#endif
