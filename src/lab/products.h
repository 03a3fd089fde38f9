/* products.h - one matmul in each number format: its rounding error, and its time where the device
 * has a kernel for it.
 *
 * The inputs are standard normals. Errors are relative to the matmul in double precision of the
 * unrounded inputs, by norm, over a sample of rows and columns of the result. A format that the
 * device has no kernel for is emulated on the CPU, on that sample: one addition after the other,
 * each rounded as an FMA rounds. */
#ifndef LAB_PRODUCTS_H
#define LAB_PRODUCTS_H

#include "backend/backend.h"
#include "lab/narrow.h"
#include "measure/rounds.h"

enum { PRODUCTS_MOST = 12, PRODUCTS_SAMPLE = 64 };

struct products_kind {
    enum narrow a, b, sum, result; /* types of the inputs, of the sums, and of the result */
    bool scaled;                   /* the inputs are divided by a power of two for each tensor */
    bool
        fast; /* sums of 8-bit inputs with fewer bits, as in training's forward; only by a kernel */
    bool in_order;    /* always emulated: one addition after the other */
    const char *note; /* what the row is; NULL: its types say it */
};

struct products_options {
    struct device device;
    int64_t size[3]; /* M, N, K */
    int samples;
    double limit_ms; /* for all times together */
    void (*each)(void *user, double share, const char *what);
    void *user;
};

struct products_result {
    const struct products_kind *kind;
    const char *kernel; /* the row of the backend's table; NULL: emulated */
    double error, expected;
    struct contender time; /* of a kernel */
};

struct products_run {
    const struct products_options *options;
    struct products_result result[PRODUCTS_MOST];
    int results;
    int64_t rows, columns; /* of the sample */
};

/* The order of magnitude that rounding explains. Rounding changes random numbers by 0.4 u of their
 * norm, where u is half of the format's epsilon: 0.39 if significands are spread evenly over
 * logarithms, 0.43 of standard normals. Errors are independent. Inputs and result count once; the
 * k-th of K partial sums has the norm sqrt(k), so all of them together count (K + 1) / 2 times. */
double products_expected(const struct products_kind *kind, int64_t K);
/* The same for each run. ST_INTERRUPTED after Ctrl-C. */
enum status products_run(const struct products_options *o, struct products_run *ret,
                         struct arena *a);

#endif
