/* check_packed.h - a product of a packed weight, checked as the product itself; private to check/. */
#ifndef CHECK_CHECK_PACKED_H
#define CHECK_CHECK_PACKED_H

#include "check/check.h"

struct arena;
struct case_data;

/* What PACK makes means something to the product behind it alone, so both are tried together: for a case
 * of MATMUL or LINEAR whose second operand may be packed, the backend's best PACK and the product that
 * takes it, against the same expectation. Reported under PACK. Nothing happens where the case has no
 * such operand or the backend does not pack it. */
enum status check_packed(const struct target *target, void *context, const struct case_data *data,
                         enum dtype dtype, const double *expected, double tolerance,
                         check_fn report, void *user, struct arena *a);

#endif
