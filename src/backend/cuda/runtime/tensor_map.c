#include "backend/cuda/runtime/tensor_map.h"

#include "base/heap.h"

#include <string.h>

static CUtensorMapDataType data_type(enum dtype dtype, bool tf32)
{
    if (tf32) return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    BUG_IF(dtype != DT_BF16 && dtype != DT_F32, "a tensor map of dtype %d", (int)dtype);
    return dtype == DT_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}

static CUtensorMapSwizzle swizzle(int bytes)
{
    switch (bytes) {
    case 128:
        return CU_TENSOR_MAP_SWIZZLE_128B;
    case 64:
        return CU_TENSOR_MAP_SWIZZLE_64B;
    case 32:
        return CU_TENSOR_MAP_SWIZZLE_32B;
    }
    BUG_IF(bytes, "a swizzle of %d bytes", bytes);
    return CU_TENSOR_MAP_SWIZZLE_NONE;
}

enum status tensor_map_make(const struct cuda_tensor *t, CUdeviceptr at, struct tensor_map *ret)
{
    cuuint64_t dim[MAP_RANK], step[MAP_RANK];
    cuuint32_t box[MAP_RANK], each[MAP_RANK];
    if (ret->at == at) return ST_OK;
    for (int i = 0; i < MAP_RANK; i++) {
        dim[i] = (cuuint64_t)t->dim[i];
        step[i] = (cuuint64_t)t->step[i];
        box[i] = (cuuint32_t)t->box[i];
        each[i] = 1;
    }
    CUresult r = cuda_driver(NULL)->cuTensorMapEncodeTiled(
        &ret->map, data_type(t->dtype, t->tf32), MAP_RANK, (void *)at, dim, step + 1, box, each,
        CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle(t->swizzle), CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    TRY(cuda_check(r, "make a tensor map"));
    ret->at = at;
    return ST_OK;
}

struct tensor_map *tensor_maps_new(int n)
{
    size_t bytes = (size_t)n * sizeof(struct tensor_map);
    struct tensor_map *ret = heap_aligned(_Alignof(struct tensor_map), (int64_t)bytes);
    memset(ret, 0, bytes);
    return ret;
}

void arg_matrix(struct cuda_launch *k, const char *name, enum cuda_arg_kind of, int index,
                int64_t rows, int64_t columns, int box_rows, int box_columns)
{
    int64_t bytes = 2 * columns;
    struct cuda_tensor t = {.dtype = DT_BF16,
                            .dim = {columns, rows, 1, 1, 1},
                            .step = {0, bytes, bytes * rows, bytes * rows, bytes * rows},
                            .box = {box_columns, box_rows, 1, 1, 1},
                            .swizzle = 2 * box_columns};
    arg_tensor_map(k, name, of, index, &t);
}
