#include "backend/cpu/vector/tables.h"

#include "backend/cpu/vector/vector.h"

#if defined(__AVX512BF16__)

/* These kernels round to bf16 with one instruction (bf16.h). For all other calls, cpu_kernel goes
 * on to the kernels of avx512. */
const struct kernel *const VEC(vector_tables)[] = {
    VEC(pointwise_rows_bf16), VEC(gelu_rows_bf16),
    VEC(reduce_rows_bf16),    VEC(norm_rows_bf16),
    VEC(rms_rows_bf16),       VEC(gated_rows_bf16),
    VEC(rope_rows_bf16),      VEC(softmax_rows_bf16),
    VEC(loss_rows_bf16),      VEC(move_rows_bf16),
    VEC(embed_rows_bf16),     VEC(blocked_rows_bf16),
    VEC(chain_rows),          NULL,
};

#else

#define BOTH(rows) VEC(rows##_f32), VEC(rows##_bf16)

const struct kernel *const VEC(vector_tables)[] = {
    BOTH(pointwise_rows),
    BOTH(gelu_rows),
    BOTH(reduce_rows),
    BOTH(norm_rows),
    BOTH(rms_rows),
    BOTH(gated_rows),
    BOTH(rope_rows),
    BOTH(softmax_rows),
    BOTH(loss_rows),
    BOTH(move_rows),
    BOTH(embed_rows),
    VEC(cast_rows),
    VEC(chain_rows),
    VEC(optimizer_rows),
    BOTH(attention_rows),
    BOTH(attention_grad_rows),
    VEC(attention_cached_rows),
    BOTH(blocked_rows),
    NULL,
};

#endif
