#include "backend/cpu/bf16/tables.h"

#include "backend/cpu/vector/vector.h"

const struct kernel *const VEC(bf16_tables)[] = {
    VEC(attention_rows),
    VEC(attention_grad_rows),
    NULL,
};
