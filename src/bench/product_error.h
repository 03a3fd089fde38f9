/* product_error.h - the rounding error of one matmul of each precision on a device. */
#ifndef BENCH_PRODUCT_ERROR_H
#define BENCH_PRODUCT_ERROR_H

#include "machine/machine.h"

/* The shape of the matmul: M x N x K. */
enum { PRODUCT_M = 128, PRODUCT_N = 128, PRODUCT_K = 768 };

/* Multiplies standard normals (base/rng.h) as a plan of precision p does: for f32 and tf32, inputs
 * and result are f32; for bf16, inputs and result are rounded to bf16. *ret_error: the root mean
 * square of the difference from the double-precision product of the unrounded inputs, divided by
 * the root mean square of that product; NAN: the device has no kernel for p. */
enum status product_error(const struct device *device, enum machine_precision p, double *ret_error);

#endif
