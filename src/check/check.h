/* check.h - compares every kernel row with the reference in double precision, case by case.
 *
 * A row is run twice on each case that it accepts, with poisoned outputs, and also in place if the
 * operator allows this. The outputs must be close to the reference by norm and have the same bits
 * in both runs; the row must not change its inputs or the memory after its outputs. */
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include "graph/op.h"

struct target;
struct kernel;
struct op_case;

enum check_placement { CHECK_APART, CHECK_IN_PLACE, CHECK_IN_PLACE_1, CHECK_WAYS };

struct check_result {
    const struct op_case *c;
    const struct kernel *kernel;
    enum dtype dtype; /* the float type under test */
    enum check_placement way;
    double error, tolerance; /* check_distance of the worst output from the reference; its limit */
    const char *problem;     /* NULL: passed; else a short description */
};

typedef void (*check_fn)(void *user, const struct check_result *r);

/* The rows and cases to check. */
struct check_scope {
    enum op op;          /* OP_COUNT: all operators */
    const char *variant; /* only kernel rows of this name; NULL: all */
    const char *small;   /* names, separated by commas, of rows to check only on cases of at most
                          * CHECK_SMALL_FLOPS FLOPs: for an emulated GPU; NULL: none */
};
enum { CHECK_SMALL_FLOPS = 7000000 };

/* Runs the rows of the backend on the cases of the operators. If a kernel fails to run, the
 * `problem` of its result says so; this function itself fails only if the device or memory
 * fails. */
enum status check_kernels(const struct target *target, void *context,
                          const struct check_scope *scope, check_fn report, void *user);

/* ||x - y|| / ||y||. Equal infinities differ by 0; unequal infinities and NaN give infinity. */
double check_distance(const double *x, const double *y, int64_t n);

#endif
