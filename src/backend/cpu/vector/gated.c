/* SwiGLU: silu(gate) * up. gate and up are the two halves of each row of one tensor, or two
 * tensors. The gradient of the one tensor, or of gate, may overwrite it. */
#include "backend/cpu/vector/act.h"
#include "backend/cpu/vector/silu.h"

/* Gate and up: rows of F elements, `stride` apart. */
struct gated {
    const act *gate, *up;
    int64_t F, stride;
};

INLINE struct gated gated_of(const struct kernel_call *c, int first)
{
    bool packed = c->n_in - first == 1;
    int64_t columns = type_columns(&c->in_type[first]), F = packed ? columns / 2 : columns;
    const act *gate = c->in[first];
    return (struct gated){gate, packed ? gate + F : (const act *)c->in[first + 1], F, columns};
}

static void swiglu_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const struct gated x = gated_of(c, 0);
    for (int64_t row = first; row < last; row++) {
        const act *gate = x.gate + row * x.stride, *up = x.up + row * x.stride;
        act *y = (act *)c->out[0] + row * x.F;
        for (int64_t i = 0; i < x.F; i += W) {
            vf silu = silu_point(load_act(gate + i, x.F - i)).y;
            store_act(y + i, silu * load_act(up + i, x.F - i), x.F - i);
        }
    }
}

static void swiglu_grad_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const struct gated x = gated_of(c, 1);
    act *dgates = c->out[0], *dups = c->n_out == 1 ? dgates + x.F : (act *)c->out[1];
    for (int64_t row = first; row < last; row++) {
        const act *dy = (const act *)c->in[0] + row * x.F;
        const act *gate = x.gate + row * x.stride, *up = x.up + row * x.stride;
        act *dgate = dgates + row * x.stride, *dup = dups + row * x.stride;
        for (int64_t i = 0; i < x.F; i += W) {
            struct silu s = silu_point(load_act(gate + i, x.F - i));
            vf d = load_act(dy + i, x.F - i), u = load_act(up + i, x.F - i);
            store_act(dgate + i, d * u * s.slope, x.F - i);
            store_act(dup + i, d * s.y, x.F - i);
        }
    }
}
RUN_ROWS(swiglu, 4)

RUN_ROWS(swiglu_grad, 6)

const struct kernel ACT(gated_rows)[] = {
    ROW(SWIGLU, "aaa", "aa", run_swiglu),
    ROW(SWIGLU_GRAD, "aaa", "aa", run_swiglu_grad),
    {0},
};
