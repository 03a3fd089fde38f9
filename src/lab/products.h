/* products.h - the rounding error of one matmul in each number format, and its time if the device
 * has a kernel for the format.
 *
 * The inputs are standard normals. Errors are relative to the matmul in double precision of the
 * unrounded inputs, by norm, over a sample of rows and columns of the result. If the device has no
 * kernel for a format, the CPU emulates the format on the sample: it adds one product after the
 * other and rounds each sum as an FMA does. */
#ifndef LAB_PRODUCTS_H
#define LAB_PRODUCTS_H

#include "backend/backend.h"
#include "lab/number_format.h"
#include "measure/rounds.h"

enum { PRODUCTS_MOST = 12, PRODUCTS_SAMPLE = 64 };

struct products_kind {
    enum number_kind a, b, sum, result; /* types of the inputs, of the sums, and of the result */
    bool scaled; /* each input is divided by a power of two before it is rounded */
    /* Sums may have fewer bits, as FP8 tensor cores have in the forward pass of a training. The
     * kind is left out if the device has no such kernel. */
    bool fast;
    bool in_order;    /* always emulated: one addition after the other */
    const char *note; /* shown in addition to the types; NULL: nothing */
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
    struct contender time; /* of a kernel; median 0 if Ctrl-C came before the kernel was timed */
};

struct products_run {
    const struct products_options *options;
    struct products_result result[PRODUCTS_MOST];
    int results;
    int64_t rows, columns; /* of the sample */
};

/* The order of magnitude of the error that rounding causes. Rounding changes random numbers by 0.4
 * u of their norm, where u is half of the format's epsilon (0.39 if the logarithms of significands
 * are uniform, 0.43 for standard normals). Errors are assumed independent. Inputs are rounded once
 * unless they are fp32, and the result is rounded once unless it has the type of the sums. The k-th
 * of K partial sums has the norm sqrt(k), so rounding all K sums counts as (K + 1) / 2 roundings of
 * the result. */
double products_expected(const struct products_kind *kind, int64_t K);
/* Runs every kind. After Ctrl-C, *ret has the results measured so far; ST_INTERRUPTED if nothing
 * was measured. */
enum status products_run(const struct products_options *o, struct products_run *ret,
                         struct arena *a);

#endif
