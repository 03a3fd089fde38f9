/* Heads apart and together. */
#include "backend/cpu/vector/act.h"

INLINE void copy_run(const act *from, act *to, int64_t n)
{
    int64_t i = 0, whole = (int64_t)(sizeof(vf) / sizeof(act));
    for (; i + whole <= n; i += whole) memcpy(to + i, from + i, sizeof(vf));
    if (i < n) memcpy(to + i, from + i, (size_t)(n - i) * sizeof(act));
}

/* Between packed (B,T,P*H*D) and P tensors (B,H,T,D); a row is one token's C = P*H*D numbers. */
INLINE void move_heads(const struct kernel_call *c, int64_t first, int64_t last, bool split)
{
    const struct type *packed = split ? &c->in_type[0] : &c->out_type[0];
    const struct type *single = split ? &c->out_type[0] : &c->in_type[0];
    int64_t T = packed->dim[1], H = single->dim[1], D = single->dim[3];
    int64_t P = packed->dim[2] / (H * D);
    for (int64_t row = first; row < last; row++) {
        act *token = (act *)(split ? c->in[0] : c->out[0]) + row * P * H * D;
        int64_t b = row / T, t = row % T;
        for (int64_t part = 0; part < P; part++)
            for (int64_t h = 0; h < H; h++, token += D) {
                act *head = (act *)(split ? c->out[part] : c->in[part]) + ((b * H + h) * T + t) * D;
                split ? copy_run(token, head, D) : copy_run(head, token, D);
            }
    }
}

static void split_heads_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    move_heads(c, first, last, true);
}

static void merge_heads_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    move_heads(c, first, last, false);
}

static enum status run_split_heads(const struct kernel_call *c)
{
    return VEC(over_rows)(c, 1, split_heads_range);
}

static enum status run_merge_heads(const struct kernel_call *c)
{
    const struct type *packed = &c->out_type[0];
    parallel_ranges(c, type_rows(packed), 1, type_columns(packed), merge_heads_range);
    return ST_OK;
}

static bool fits(const struct kernel_call *c)
{
    return VEC(types_are)(c, ACT_DTYPE, "aaa", "aaa");
}

const struct kernel ACT(move_rows)[] = {
    {.op = OP_SPLIT_HEADS, .variant = ISA_NAME, .fits = fits, .run = run_split_heads},
    {.op = OP_MERGE_HEADS, .variant = ISA_NAME, .fits = fits, .run = run_merge_heads},
    {0},
};
