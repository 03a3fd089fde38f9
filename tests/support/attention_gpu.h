/* attention_gpu.h - tests of the attention rows for compute capability 9.0: the forward pass, then
 * both rows of the backward pass on its results. An error is printed and counted. */
#ifndef SUPPORT_ATTENTION_GPU_H
#define SUPPORT_ATTENTION_GPU_H

#include "attention_numbers.h"
#include "row_run.h"
#include "tuning/target.h"

enum { GRADIENT_ROWS = 2 };                  /* wgmma, wgmma_sums */
enum { OF_Y, OF_DQ, OF_DK, OF_DV, OUTPUTS }; /* y is the output of the forward pass */

/* Errors of an output by norm: of the whole tensor, of its worst row. */
struct attention_error {
    double all, row;
};

struct attention_gpu {
    const struct backend *backend; /* NULL: there is no such GPU */
    struct target target;
    void *context;
    const char *test;
    bool announcing;     /* calls are only prepared, so that all kernels are compiled at once */
    int failures, tried; /* tried and the fields below count since the last report */
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

/* Builds a call of the forward or backward pass, whether or not a row accepts it. */
void attention_call(const struct attention_gpu *g, const struct attention_setting *s, bool backward,
                    struct row_run *ret);
/* Whether that row of the backward pass accepts the setting. */
bool attention_gradient_fits(const struct attention_setting *s, int row);
extern const char *const attention_gradient_row[GRADIENT_ROWS];

/* Results of the rows, on the host. */
struct attention_made {
    uint16_t *y;
    float *lse;
    uint16_t *dqkv[GRADIENT_ROWS]; /* NULL: the row does not accept the setting */
};
/* Runs the rows. False: the calls were only announced. Free *ret with attention_made_free. */
bool attention_make(struct attention_gpu *g, const struct attention_setting *s, const uint16_t *qkv,
                    const uint16_t *dy, struct attention_made *ret);
void attention_made_free(struct attention_made *m);

/* Compares all outputs with double precision. */
void attention_try(struct attention_gpu *g, const struct attention_setting *s);

/* The functions below are in attention_gpu_bits.c. */
/* Reads the dropout mask from the results of every row of flash and of slow attention, for equal
 * weights and one-hot values. Counts the elements that are kept, and all elements. */
void attention_masks(struct attention_gpu *g, const struct attention_setting *s, int64_t *kept,
                     int64_t *seen);
/* Checks that the first and the last sequence give the same bits as in a batch of their own if all
 * numbers of the sequences between them are `worthless`. */
void attention_alone(struct attention_gpu *g, const struct attention_setting *s, float worthless);
/* Checks that `times` runs give the same bits while another kernel occupies some SMs. */
void attention_repeats(struct attention_gpu *g, const struct attention_setting *s, int times);

#endif
