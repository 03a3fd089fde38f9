/* text_kernel.h - kernels with a source from the caller: struct backend_texts of backend.h. */
#ifndef BACKEND_CUDA_RUNTIME_TEXT_KERNEL_H
#define BACKEND_CUDA_RUNTIME_TEXT_KERNEL_H

#include "backend/backend.h"

enum status text_kernel_add(void *context, const struct kernel_text *t, void **ret_kernel);
void text_kernel_free(void *context, void *kernel);
enum status text_kernel_launch(void *context, void *kernel, const struct kernel_shape *s,
                               void **argument);
enum status text_kernel_map(void *context, const struct kernel_map *m, void *matrix,
                            void *ret_argument);
enum status text_kernel_resources(void *context, void *kernel, const struct kernel_shape *s,
                                  struct kernel_resources *ret);
enum status text_kernel_assembly(void *context, const struct kernel_text *t, struct str *ret);

struct sm_limits {
    int threads, blocks, registers; /* of an SM */
    int64_t shared_bytes;
};
/* Returns how many blocks an SM holds at once, by the rule of tuning/occupancy.h for compute
 * capability 8.0 and later. *ret_limit names the resource that limits this number. */
int sm_resident(const struct sm_limits *sm, int threads, int registers, int64_t shared_bytes,
                const char **ret_limit);

#endif
