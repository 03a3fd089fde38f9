/* attention_gpu.h - the rows of attention for compute capability 9.0, all tried in the same way: the forward, then both rows of the
 * backward on what the forward made. What is wrong is printed and counted; the test goes on. */
#ifndef SUPPORT_ATTENTION_GPU_H
#define SUPPORT_ATTENTION_GPU_H

#include "attention_numbers.h"
#include "row_run.h"
#include "tuning/target.h"

enum { GRADIENT_ROWS = 2 };                  /* wgmma, wgmma_sums */
enum { OF_Y, OF_DQ, OF_DK, OF_DV, OUTPUTS }; /* y is the forward's */

/* Errors of an output by norm: all of it, its worst row. */
struct attention_error {
    double all, row;
};

struct attention_gpu {
    const struct backend *backend; /* NULL: there is no such GPU */
    struct target target;
    void *context;
    const char *test;
    bool announcing;     /* calls are prepared, so that all are compiled at once, and not run */
    int failures, tried; /* tried: since the last report, as is what comes */
    struct attention_error worst[GRADIENT_ROWS][OUTPUTS];
    double worst_lse;
};

bool attention_gpu_open(struct attention_gpu *g);
void attention_gpu_close(struct attention_gpu *g);
/* Counts a failure, with its words. */
void attention_wrong(struct attention_gpu *g, const struct attention_setting *s, const char *words,
                     ...) __attribute__((format(printf, 3, 4)));
/* A line of what the test came near to. */
void attention_report(struct attention_gpu *g);

/* A call of the forward, or of the backward; the variant need not be there. */
void attention_call(const struct attention_gpu *g, const struct attention_setting *s, bool backward,
                    struct row_run *ret);
/* Whether that row of the backward is for the setting. */
bool attention_gradient_fits(const struct attention_setting *s, int row);
extern const char *const attention_gradient_row[GRADIENT_ROWS];

/* What the rows made, on the host. */
struct attention_made {
    uint16_t *y;
    float *lse;
    uint16_t *dqkv[GRADIENT_ROWS]; /* NULL: the row is not for the setting */
};
/* False where it was only announced; else attention_made_free. */
bool attention_make(struct attention_gpu *g, const struct attention_setting *s, const uint16_t *qkv,
                    const uint16_t *dy, struct attention_made *ret);
void attention_made_free(struct attention_made *m);

/* All outputs against double precision. */
void attention_try(struct attention_gpu *g, const struct attention_setting *s);

/* Below: attention_gpu_bits.c. */
/* Dropout's mask read out of every row of flash and of slow attention, by weights that are alike and values of one column. Adds up
 * elements that are kept, and all. */
void attention_masks(struct attention_gpu *g, const struct attention_setting *s, int64_t *kept,
                     int64_t *seen);
/* The first and the last sequence must have the bits that they have alone, where those between them are `worthless`. */
void attention_alone(struct attention_gpu *g, const struct attention_setting *s, float worthless);
/* The same bits in so many runs, beside a kernel that takes multiprocessors for a while. */
void attention_repeats(struct attention_gpu *g, const struct attention_setting *s, int times);

#endif
