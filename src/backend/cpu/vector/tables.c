#include "backend/cpu/vector/tables.h"

#include "backend/cpu/vector/attention_tables.h"
#include "backend/cpu/vector/vector.h"

const struct kernel *const VEC(vector_tables)[] = {
    VEC(pointwise_rows),      VEC(gelu_rows),
    VEC(reduce_rows),         VEC(norm_rows),
    VEC(softmax_rows),        VEC(loss_rows),
    VEC(move_rows),           VEC(embed_rows),
    VEC(optimizer_rows),      VEC(attention_rows),
    VEC(attention_grad_rows), VEC(attention_cached_rows),
    VEC(blocked_rows),        NULL,
};
