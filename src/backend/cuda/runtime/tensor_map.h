/* tensor_map.h - tensor maps of a call, made by the driver for the addresses that it has. Private to backend/cuda. */
#ifndef BACKEND_CUDA_RUNTIME_TENSOR_MAP_H
#define BACKEND_CUDA_RUNTIME_TENSOR_MAP_H

#include "backend/cuda/runtime/driver.h"
#include "backend/cuda/runtime/launch.h"

/* One that is made; `at` is the address that it was made for, 0: none yet. */
struct tensor_map {
    CUtensorMap map;
    CUdeviceptr at;
};

/* Makes it for that address, where it is not yet. */
enum status tensor_map_make(const struct cuda_tensor *t, CUdeviceptr at, struct tensor_map *ret);
/* n of them, none made yet, for free(). */
struct tensor_map *tensor_maps_new(int n);

/* An argument: boxes of box_rows x box_columns of a row-major matrix of bf16, whose rows the swizzle spans. */
void arg_matrix(struct cuda_launch *k, const char *name, enum cuda_arg_kind of, int index,
                int64_t rows, int64_t columns, int box_rows, int box_columns);

#endif
