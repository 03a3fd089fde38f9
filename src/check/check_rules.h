/* check_rules.h - checks the rules of an operator against arithmetic: its gradient against differences,
 * its expansion against its kernel; both in double precision on the CPU's reference kernels. */
#ifndef CHECK_CHECK_RULES_H
#define CHECK_CHECK_RULES_H

#include "base/base.h"

/* Case number i: the gradient of a randomly weighted sum of the outputs against central differences, by
 * norm over (a sample of) the elements of each float input; the worst input's. Weights, because a plain
 * sum hides a transposed gradient. */
enum status check_gradient(int i, double *ret_error);
/* Case number i: the outputs of the operator against those of its expansion; the worst output's. */
enum status check_expansion(int i, double *ret_error);

/* What the two may reach: differences lose half of the digits, and expansions some of the last. */
extern const double gradient_tolerance, expansion_tolerance;

#endif
