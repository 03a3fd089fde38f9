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

/* Runs every row of the backend, or only those of `variant` unless it is NULL, on every case of
 * `op` (OP_COUNT: of all operators). A kernel that fails to run is a problem in its result; a
 * failed status is a failure of the machine. */
enum status check_kernels(const struct target *target, void *context, enum op op,
                          const char *variant, check_fn report, void *user);

/* ||x - y|| / ||y||. Equal infinities have distance 0; others, and NaN, infinity. */
double check_distance(const double *x, const double *y, int64_t n);

#endif
