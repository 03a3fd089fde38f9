/* attention_gpu.h - the attention rows for compute capability 9.0, all tested in the same way: the
 * forward, then both rows of the backward on the results of the forward. Errors are printed and
 * counted; the test continues. */
#ifndef SUPPORT_ATTENTION_GPU_H
#define SUPPORT_ATTENTION_GPU_H

#include "attention_numbers.h"
#include "row_run.h"
#include "tuning/target.h"

enum { GRADIENT_ROWS = 2 };                  /* wgmma, wgmma_sums */
enum { OF_Y, OF_DQ, OF_DK, OF_DV, OUTPUTS }; /* y: of the forward */

/* Errors of an output by norm: of the whole tensor, of its worst row. */
struct attention_error {
    double all, row;
};

struct attention_gpu {
    const struct backend *backend; /* NULL: there is no such GPU */
    struct target target;
    void *context;
    const char *test;
    bool announcing;     /* calls are prepared, so that all are compiled at once, but not run */
    int failures, tried; /* tried and below: since the last report */
    struct attention_error worst[GRADIENT_ROWS][OUTPUTS];
    double worst_lse;
};

bool attention_gpu_open(struct attention_gpu *g);
void attention_gpu_close(struct attention_gpu *g);
/* Counts a failure and prints its text. */
void attention_wrong(struct attention_gpu *g, const struct attention_setting *s, const char *words,
                     ...) __attribute__((format(printf, 3, 4)));
/* Prints a line with the largest errors of the test. */
void attention_report(struct attention_gpu *g);

/* A call of the forward or of the backward; the variant need not exist. */
void attention_call(const struct attention_gpu *g, const struct attention_setting *s, bool backward,
                    struct row_run *ret);
/* Whether that row of the backward accepts the setting. */
bool attention_gradient_fits(const struct attention_setting *s, int row);
extern const char *const attention_gradient_row[GRADIENT_ROWS];

/* Results of the rows, on the host. */
struct attention_made {
    uint16_t *y;
    float *lse;
    uint16_t *dqkv[GRADIENT_ROWS]; /* NULL: the row does not accept the setting */
};
/* False if it was only announced; otherwise release with attention_made_free. */
bool attention_make(struct attention_gpu *g, const struct attention_setting *s, const uint16_t *qkv,
                    const uint16_t *dy, struct attention_made *ret);
void attention_made_free(struct attention_made *m);

/* Compares all outputs with double precision. */
void attention_try(struct attention_gpu *g, const struct attention_setting *s);

/* Below: attention_gpu_bits.c. */
/* Reads the dropout mask out of every row of flash and of slow attention, with equal weights and
 * values of one column. Counts the elements that are kept, and all elements. */
void attention_masks(struct attention_gpu *g, const struct attention_setting *s, int64_t *kept,
                     int64_t *seen);
/* The first and the last sequence must have the same bits as alone if those between them are
 * `worthless`. */
void attention_alone(struct attention_gpu *g, const struct attention_setting *s, float worthless);
/* Checks for the same bits in `runs` runs, concurrently with a kernel that occupies SMs for a
 * while. */
void attention_repeats(struct attention_gpu *g, const struct attention_setting *s, int times);

#endif
