/* check_rules.h - checks the rules of an operator: its gradient against finite differences, and its
 * expansion against its kernel; both in double precision with the CPU's reference kernels. */
#ifndef CHECK_CHECK_RULES_H
#define CHECK_CHECK_RULES_H

#include "base/base.h"

/* For case i, compares the gradient of a randomly weighted sum of the outputs with central
 * differences, by norm over the elements of each float input or over a sample of its elements.
 * *ret_error is the error of the worst input. A plain sum would hide a transposed gradient, so the
 * sum is weighted. */
enum status check_gradient(int i, double *ret_error);
/* For case i, compares the kernel's outputs with those of the expansion; *ret_error is the error of
 * the worst output. */
enum status check_expansion(int i, double *ret_error);

/* Allowed errors: finite differences lose half of the digits, expansions only the last few. */
extern const double gradient_tolerance, expansion_tolerance;

#endif
