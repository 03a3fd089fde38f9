/* product_error.h - the rounding error of one matmul of each precision on a device. */
#ifndef BENCH_PRODUCT_ERROR_H
#define BENCH_PRODUCT_ERROR_H

#include "machine/machine.h"

/* The product whose error it is: M x N x K. */
enum { PRODUCT_M = 128, PRODUCT_N = 128, PRODUCT_K = 768 };

/* Multiplies standard normals (base/rng.h) as a plan of that precision does: f32 or tf32 from f32
 * to f32; bf16 from inputs rounded to bf16 to a result rounded to bf16. *ret_error: the root mean
 * square of its difference from the product in double precision of the unrounded inputs, relative
 * to that of the product; NAN: the device has no kernel for it. */
enum status product_error(const struct device *device, enum machine_precision p, double *ret_error);

#endif
