/* Rotary position embeddings: columns 2i and 2i+1 of a head are rotated by an angle, whose
 * cosine and sine are neighbors in the table. A vector holds whole pairs: y = x c + swapped(x)
 * s, where s is negative for the first column of a pair. */
#include "backend/cpu/vector/act.h"

#define OF_PAIR(lane, s) (((lane) & ~1) + (s))

/* Rotates one head; y may be x. `sign` multiplies the sines: -1 and 1 alternately, or 1 and -1 for
 * the opposite rotation (rope.back). */
INLINE void rotate(const act *x, const float *cos_sin, act *y, int64_t D, vf sign)
{
    for (int64_t i = 0; i < D; i += W) {
        vf a = load_act(x + i, D - i), t = load(cos_sin + i, D - i);
        vf c = VEC_PICK(t, t, OF_PAIR, 0), s = VEC_PICK(t, t, OF_PAIR, 1);
        store_act(y + i, a * c + VEC_SWAP(a, 1) * (s * sign), D - i);
    }
}

static void rope_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t T = c->in_type[1].dim[0], D = c->in_type[1].dim[1], C = type_columns(&c->in_type[0]);
    int64_t rotated = c->attr->rope.heads * D;
    const vi odd = (vi){VEC_LANES} & 1;
    vf sign = __builtin_convertvector(odd * 2 - 1, vf);
    if (c->attr->rope.back) sign = -sign;
    for (int64_t row = first; row < last; row++) {
        const act *x = (const act *)c->in[0] + row * C;
        act *y = (act *)c->out[0] + row * C;
        const float *cos_sin = (const float *)c->in[1] + row % T * D;
        for (int64_t h = 0; h < rotated; h += D) rotate(x + h, cos_sin, y + h, D, sign);
        if (x != y) memcpy(y + rotated, x + rotated, (size_t)(C - rotated) * sizeof *y);
    }
}
RUN_ROWS(rope, 2)

#if !ACT_IS_BF16
/* Computes the table in double, because in float the error of an angle grows with the position: at
 * position 100,000 it is up to 0.004. */
static void table_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const int32_t *position = c->in[0];
    float *table = c->out[0];
    int64_t D = type_columns(&c->out_type[0]);
    for (int64_t i = 0; i < D; i += 2) {
        double step = pow(c->attr->rope.theta, -(double)i / (double)D);
        for (int64_t t = first; t < last; t++) {
            table[t * D + i] = (float)cos(position[t] * step);
            table[t * D + i + 1] = (float)sin(position[t] * step);
        }
    }
}

static enum status run_table(const struct kernel_call *c)
{
    const struct type *table = &c->out_type[0];
    parallel_ranges(c, table->dim[0], 16, 20 * table->dim[1], table_range);
    return ST_OK;
}

#endif

const struct kernel ACT(rope_rows)[] = {
    ROW(ROPE, "af", "a", run_rope),
#if !ACT_IS_BF16
    ROW(ROPE_TABLE, "i", "f", run_table),
#endif
    {0},
};
