/* torch_types.h - torch.save's names of types; included by torch_file.c and torch_write.c only. */
#ifndef EXCHANGE_TORCH_TYPES_H
#define EXCHANGE_TORCH_TYPES_H

#include "data/safetensors.h"

#define TORCH_TENSOR    "_rebuild_tensor_v2"
#define TORCH_PARAMETER "_rebuild_parameter"
#define TORCH_UTILS     "torch._utils"

struct torch_type {
    const char *storage; /* the storage class of this type in the module torch */
    int bytes;           /* of an element */
};
extern const struct torch_type torch_types[SAFETENSORS_TYPE_COUNT];

#endif
