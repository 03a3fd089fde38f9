#include "check/chosen.h"

#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/isa.h"
#include "check/cases.h"
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

/* The variant of the best row for the first case of `op` (check/cases.h) with tensors of `dtype`;
 * NULL if there is no such case or row. */
static const char *chosen_variant(const struct backend *b, enum op op, enum dtype dtype)
{
    const struct op_case *c;
    struct node node;
    struct kernel_call call;
    if (op_def(op)->flags & OP_VIEW) return NULL;
    for (int i = 0; (c = case_at(i)); i++) {
        if (c->op != op || !case_call(c, dtype, &node, &call)) continue;
        const struct kernel *k = b->kernels.find((int)op, &call, 0);
        if (k) return k->variant;
    }
    return NULL;
}

static int most_first(const void *a, const void *b)
{
    return ((const struct chosen *)b)->operators - ((const struct chosen *)a)->operators;
}

int chosen_variants(const struct backend *b, enum dtype dtype,
                    struct chosen ret_chosen[CHOSEN_MOST])
{
    int n = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        const char *variant = chosen_variant(b, (enum op)op, dtype);
        int i = 0;
        if (!variant) continue;
        while (i < n && strcmp(ret_chosen[i].variant, variant) != 0) i++;
        BUG_IF(i == CHOSEN_MOST, "more than %d variants", CHOSEN_MOST);
        if (i == n) ret_chosen[n++] = (struct chosen){variant, 0};
        ret_chosen[i].operators++;
    }
    qsort(ret_chosen, (size_t)n, sizeof *ret_chosen, most_first);
    return n;
}

enum dtype chosen_fastest(const struct backend *b)
{
    const char *matmul = chosen_variant(b, OP_LINEAR, DT_BF16);
    bool library = matmul && !strcmp(matmul, "onednn");
    return library && isa_bf16_is_fast() ? DT_BF16 : DT_F32;
}
