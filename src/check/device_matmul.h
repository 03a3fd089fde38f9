/* device_matmul.h - one matmul on a device, by a row of its backend's table. */
#ifndef CHECK_DEVICE_MATMUL_H
#define CHECK_DEVICE_MATMUL_H

#include "backend/backend.h"
#include "backend/kernel.h"

/* Types of A, B and C = A B. 8-bit A and B are codes: numbers divided by the matrix's scale. */
struct device_matmul_types {
    enum dtype a, b, c;
    bool tf32; /* f32 operands may be rounded to TF32 */
    bool fast; /* sums of products of 8-bit operands may have fewer bits than f32 */
};

struct device_matmul {
    const struct backend *backend;
    void *context;
    const struct kernel *kernel; /* NULL: the device has no kernel for the matmul */
    enum op op;
    union attr attr;
    struct kernel_call call;
};

/* Finds the kernel for A (M,K) and B (K,N), or B (N,K) if the types have 8 bits; `size` is M, N, K.
 * `context` is the open device. `m` must not be moved afterwards; `target` must outlive `m`. */
void device_matmul_find(struct device_matmul *m, const struct backend *backend, void *context,
                        const struct target *target, const struct device_matmul_types *types,
                        const int64_t size[3]);
/* Uploads the operands and prepares the kernel that was found. `scale` has the scales of A and B if
 * these have 8 bits. device_matmul_close releases everything, even if this function failed. */
enum status device_matmul_open(struct device_matmul *m, const void *a, const void *b,
                               const float scale[2]);
/* Launches the matmul and does not wait for it. */
enum status device_matmul_start(const struct device_matmul *m);
/* Waits for the device and copies C, converted to floats. */
enum status device_matmul_result(const struct device_matmul *m, float *ret);
void device_matmul_close(struct device_matmul *m);

#endif
