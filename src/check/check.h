/* check.h - compares every kernel row with the reference in double precision, case by case.
 *
 * A row is run on each case that it fits, with its outputs poisoned, also in place where the operator
 * allows it, twice. It must come near the reference by norm, leave its inputs and what lies behind its
 * outputs alone, and give the same bits again. */
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include "graph/op.h"

struct target;
struct kernel;
struct op_case;

enum check_way { CHECK_APART, CHECK_IN_PLACE, CHECK_IN_PLACE_1, CHECK_WAYS };

struct check_result {
    const struct op_case *c;
    const struct kernel *kernel;
    enum dtype dtype; /* the float type under test */
    enum check_way way;
    double error, tolerance; /* the worst output's distance from the reference over its norm */
    const char *problem;     /* NULL: fine; else what is wrong, in few words */
};

typedef void (*check_fn)(void *user, const struct check_result *r);

/* Tries every row of the target's backend, or those of that variant (NULL: all), on every case of `op`, or of all if OP_COUNT. A
 * kernel that fails to run is a problem in its result; a status is a failure of the machine. */
enum status check_kernels(const struct target *target, void *context, enum op op,
                          const char *variant, check_fn report, void *user);

/* ||x - y|| / ||y||; equal infinities are no distance, anything else that is not finite is infinitely far. */
double check_distance(const double *x, const double *y, int64_t n);

#endif
