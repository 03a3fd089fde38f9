#include "backend/cpu/vector/tables.h"

#include "backend/cpu/vector/attention_tables.h"
#include "backend/cpu/vector/vector.h"

#define BOTH(rows) VEC(rows##_f32), VEC(rows##_bf16)

const struct kernel *const VEC(vector_tables)[] = {
    BOTH(pointwise_rows),
    BOTH(gelu_rows),
    BOTH(reduce_rows),
    BOTH(norm_rows),
    BOTH(softmax_rows),
    BOTH(loss_rows),
    BOTH(move_rows),
    BOTH(embed_rows),
    VEC(cast_rows),
    VEC(optimizer_rows),
    VEC(attention_rows),
    VEC(attention_grad_rows),
    VEC(attention_cached_rows),
    BOTH(blocked_rows),
    NULL,
};
