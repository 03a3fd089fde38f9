/* tensor_map.h - tensor maps of a call, encoded by the driver. Private to backend/cuda. */
#ifndef BACKEND_CUDA_RUNTIME_TENSOR_MAP_H
#define BACKEND_CUDA_RUNTIME_TENSOR_MAP_H

#include "backend/cuda/runtime/driver.h"
#include "backend/cuda/runtime/launch.h"

/* A tensor map. `at` is the address for which the map is encoded, or 0 if the map is not encoded
 * yet. */
struct tensor_map {
    CUtensorMap map;
    CUdeviceptr at;
};

/* Encodes the map for address `at`, unless *ret is already encoded for this address. */
enum status tensor_map_make(const struct cuda_tensor *t, CUdeviceptr at, struct tensor_map *ret);
/* Returns n maps that are not encoded yet. The caller releases them with free(). */
struct tensor_map *tensor_maps_new(int n);

/* Adds an argument: a tensor map of a row-major bf16 matrix with boxes of box_rows x box_columns. A
 * row of a box is as wide as the swizzle. */
void arg_matrix(struct cuda_launch *k, const char *name, enum cuda_arg_kind of, int index,
                int64_t rows, int64_t columns, int box_rows, int box_columns);

#endif
