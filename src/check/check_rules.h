/* check_rules.h - checks the rules of an operator: its gradient against finite differences, and its
 * expansion against its kernel; both in double precision with the CPU's reference kernels. */
#ifndef CHECK_CHECK_RULES_H
#define CHECK_CHECK_RULES_H

#include "base/base.h"

/* For case i, compares the gradient of a randomly weighted sum of the outputs with central
 * differences, by norm over the elements of each float input, or a sample of them. Returns the
 * error of the worst input. Weights are needed because a plain sum hides a transposed gradient. */
enum status check_gradient(int i, double *ret_error);
/* For case i, compares the outputs with those of the expansion; returns the worst error. */
enum status check_expansion(int i, double *ret_error);

/* Allowed errors: finite differences lose half of the digits, expansions only the last few. */
extern const double gradient_tolerance, expansion_tolerance;

#endif
