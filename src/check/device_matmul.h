/* device_matmul.h - one matmul on a device, by a row of its backend's table. */
#ifndef CHECK_DEVICE_MATMUL_H
#define CHECK_DEVICE_MATMUL_H

#include "backend/backend.h"
#include "backend/kernel.h"

/* Types of A, B and C = A B. 8-bit A and B are codes: their numbers over a scale for each. */
struct device_matmul_types {
    enum dtype a, b, c;
    bool tf32; /* f32 operands may be rounded to TF32 */
    bool fast; /* of 8-bit operands: sums may have fewer bits than f32 */
};

struct device_matmul {
    const struct backend *backend;
    void *context;
    const struct kernel *kernel; /* NULL: the device has none for it */
    enum op op;
    union attr attr;
    struct kernel_call call;
};

/* Finds the kernel for A (M,K) and B (K,N), or (N,K) of 8-bit types; size is M, N, K. `context` is
 * the open device. The struct must not move afterwards; the target must outlive it. */
void device_matmul_find(struct device_matmul *m, const struct backend *backend, void *context,
                        const struct target *target, const struct device_matmul_types *types,
                        const int64_t size[3]);
/* Uploads the operands and prepares the kernel that was found. `scale`: of A and B if they have 8
 * bits. device_matmul_close releases everything, after a failure too. */
enum status device_matmul_open(struct device_matmul *m, const void *a, const void *b,
                               const float scale[2]);
/* Launches it; does not wait. */
enum status device_matmul_start(const struct device_matmul *m);
/* Waits, and fetches C as floats. */
enum status device_matmul_result(const struct device_matmul *m, float *ret);
void device_matmul_close(struct device_matmul *m);

#endif
