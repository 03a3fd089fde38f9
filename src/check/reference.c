#include "check/reference.h"

#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/arena.h"

#include <string.h>

enum status reference_run(enum op op, struct kernel_call *call, struct arena *scratch)
{
    const struct backend *cpu = backend_find("cpu");
    const struct kernel *k;
    for (int i = 0; (k = cpu->kernels.find((int)op, call, i)); i++)
        if (strcmp(k->variant, "ref") == 0) break;
    BUG_IF(!k, "%s has no reference kernel for these types", op_def(op)->name);
    if (k->scratch_bytes) {
        BUG_IF(!scratch, "%s needs scratch", op_def(op)->name);
        call->scratch = arena_alloc(scratch, k->scratch_bytes(k, call));
    }
    return k->run(call);
}

enum status reference_convert(void *to, enum dtype to_dtype, const void *from,
                              enum dtype from_dtype, int64_t n)
{
    if (to_dtype == from_dtype) {
        memcpy(to, from, (size_t)(n * dtype_size(to_dtype)));
        return ST_OK;
    }
    struct kernel_call call = {
        .n_in = 1,
        .n_out = 1,
        .in_type = {type_1d(from_dtype, n)},
        .out_type = {type_1d(to_dtype, n)},
        .in = {(void *)from},
        .out = {to},
    };
    return reference_run(OP_CAST, &call, NULL);
}

enum status reference_round(double *x, int64_t n, enum dtype dtype, struct arena *scratch)
{
    if (dtype == DT_F64) return ST_OK;
    void *rounded = arena_alloc(scratch, n * dtype_size(dtype));
    TRY(reference_convert(rounded, dtype, x, DT_F64, n));
    return reference_convert(x, DT_F64, rounded, dtype, n);
}
