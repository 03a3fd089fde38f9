#include "engine/find_nan.h"

#include "backend/backend.h"

#include <float.h>
#include <string.h>

static double number_at(enum dtype dtype, const void *x, int64_t i)
{
    switch (dtype) {
    case DT_F32:
        return (double)((const float *)x)[i];
    case DT_F64:
        return ((const double *)x)[i];
    case DT_BF16: { /* the upper half of a float32 */
        uint32_t bits = (uint32_t)((const uint16_t *)x)[i] << 16;
        float number;
        memcpy(&number, &bits, sizeof number);
        return (double)number;
    }
    default:
        return 0;
    }
}

/* The index of the first NaN or +infinity of a chunk; `n` if there is none. */
static int64_t first_bad(enum dtype dtype, const void *x, int64_t n)
{
    int64_t i = 0;
    while (i < n && number_at(dtype, x, i) <= DBL_MAX) i++;
    return i;
}

static enum status look_at(struct find_nan *f, const struct plan *p, const struct node *n, value v)
{
    const struct type *t = graph_type(p->graph, v);
    int64_t size = dtype_size(t->dtype), per_chunk = (int64_t)sizeof f->chunk / size;
    int64_t elements = type_elements(t);
    const char *from = plan_address(p, v);
    for (int64_t done = 0; done < elements; done += per_chunk) {
        int64_t some = elements - done < per_chunk ? elements - done : per_chunk;
        TRY(p->backend->memory.download(p->context, f->chunk, from + done * size, some * size));
        int64_t at = first_bad(t->dtype, f->chunk, some);
        if (at == some) continue;
        char text[TYPE_TEXT];
        return fail(ST_NUMERIC, "element %lld of its output %s is NaN or infinite (%s pass)",
                    (long long)(done + at), type_text(text, t), phase_name(n->phase));
    }
    return ST_OK;
}

static enum status after_step(void *user, const struct plan *p, int step)
{
    const struct node *n = &p->graph->node[step];
    /* Waits here, so that a kernel that fails is reported with its own node. */
    TRY(p->backend->stream.sync(p->context));
    bool begun = op_def(n->op)->family == FAMILY_COMMUNICATION && n->op != OP_AWAIT;
    if (begun) return ST_OK; /* the output is complete only after AWAIT */
    for (int i = 0; i < n->n_out; i++) {
        if (!dtype_is_float(graph_type(p->graph, n->out[i])->dtype)) continue;
        TRY(look_at(user, p, n, n->out[i]));
    }
    return ST_OK;
}

struct plan_hooks find_nan_hooks(struct find_nan *f)
{
    return (struct plan_hooks){.user = f, .after = after_step};
}
