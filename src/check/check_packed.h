/* check_packed.h - checks PACK together with a matmul that reads its output; private to check/. */
#ifndef CHECK_CHECK_PACKED_H
#define CHECK_CHECK_PACKED_H

#include "check/check.h"

struct arena;
struct case_data;

/* Only the matmul knows the layout that PACK writes. So for a case of MATMUL or LINEAR whose second
 * operand may be packed, runs the backend's best PACK and then the matmul that reads the packed
 * operand, and compares the matmul's output with `expected`; it reports this as a result of PACK.
 * Does nothing for other cases. */
enum status check_packed(const struct target *target, void *context, const struct case_data *data,
                         enum dtype dtype, const double *expected, double tolerance,
                         check_fn report, void *user, struct arena *a);

#endif
