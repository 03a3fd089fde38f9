/* check.h - compares every kernel row with the reference in double precision, case by case.
 *
 * A row is run twice on each case that it fits, with poisoned outputs, and also in place if the
 * operator allows it. It must be close to the reference by norm, must not change its inputs or
 * memory after its outputs, and must give the same bits both times. */
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
    double error,
        tolerance; /* of the worst output: distance from the reference, relative to its norm */
    const char *problem; /* NULL: passed; else a short description */
};

typedef void (*check_fn)(void *user, const struct check_result *r);

/* What is checked. */
struct check_scope {
    enum op op;          /* OP_COUNT: all operators */
    const char *variant; /* only kernel rows of this name; NULL: all */
    const char *small;   /* rows of these names, separated by commas, only on cases of at most
                          * CHECK_SMALL_FLOPS: for an emulated GPU; NULL: none */
};
enum { CHECK_SMALL_FLOPS = 7000000 };

/* Runs the rows of the backend on the cases of the operators. A kernel that fails to run is a
 * problem in its result; a failed status is a failure of the machine. */
enum status check_kernels(const struct target *target, void *context,
                          const struct check_scope *scope, check_fn report, void *user);

/* ||x - y|| / ||y||. Equal infinities have distance 0; others, and NaN, infinity. */
double check_distance(const double *x, const double *y, int64_t n);

#endif
