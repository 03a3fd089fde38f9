/* Matrix products without a library: what runs where oneDNN is not to be had, and what it is compared
 * with. A tile of C is one work item; its parts of A and B are copied, DEPTH at a time, into the order
 * in which the inner loop reads them, so transposes and odd edges cost only in the copy, and bf16
 * becomes fp32 there. The inner loop keeps TALL x 2W numbers of C in registers. */
#include "backend/cpu/product.h"
#include "backend/cpu/vector/act.h"

#if defined(__AVX512F__)
enum { TALL = 12 }; /* 24 of 32 registers hold C */
#else
enum { TALL = 6 }; /* 12 of 16 */
#endif
enum { WIDE = 2 * W, TILE_M = 8 * 12, TILE_N = 128, DEPTH = 192 };

struct tile {
    int64_t m, n;      /* numbers of C: at most TILE_M x TILE_N */
    const float *bias; /* NULL: none */
    float *c;          /* its sums: C itself, or a buffer where that is bf16 */
    int64_t ldc;
};

/* n items x depth, in strips of `width` items: strip, depth, item. Missing items are zero. */
INLINE void pack(const act *x, int64_t item_stride, int64_t depth_stride, int64_t n, int64_t depth,
                 const int width, float *to)
{
    for (int64_t at = 0; at < n; at += width, x += width * item_stride, to += width * depth) {
        int64_t items = at_most(width, n - at);
        if (items < width) memset(to, 0, (size_t)(width * depth) * sizeof *to);
        if (item_stride == 1 && items == width) {
            for (int64_t k = 0; k < depth; k++)
                for (int i = 0; i < width; i += W)
                    put(to + k * width + i, take_act(x + k * depth_stride + i, width - i),
                        width - i);
            continue;
        }
        for (int64_t i = 0; i < items; i++)
            for (int64_t k = 0; k < depth; k++)
                to[k * width + i] = act_at(x, i * item_stride + k * depth_stride);
    }
}

/* sum[TALL][2] of TALL rows and WIDE columns over `depth`. */
INLINE void multiply(const float *a, const float *b, int64_t depth, vf (*sum)[2])
{
    for (int64_t k = 0; k < depth; k++, a += TALL, b += WIDE) {
        vf left = vf_load(b), right = vf_load(b + W);
#pragma GCC unroll 12
        for (int i = 0; i < TALL; i++) {
            sum[i][0] += a[i] * left;
            sum[i][1] += a[i] * right;
        }
    }
}

/* A column of strips of a tile: one strip of B with all those of A. */
static void strips(const struct tile *t, const float *a, const float *b, int64_t n, int64_t depth,
                   bool begin)
{
    float *c = t->c + n;
    int64_t left = t->n - n;
    for (int64_t m = 0; m < t->m; m += TALL, a += TALL * depth) {
        vf sum[TALL][2] = {0};
        multiply(a, b, depth, sum);
        for (int64_t i = 0; i < at_most(TALL, t->m - m); i++)
            for (int half = 0; half < 2 && left > half * W; half++) {
                float *to = c + (m + i) * t->ldc + half * W;
                int64_t room = left - half * W;
                vf old = {0};
                if (!begin) old = take(to, room);
                if (begin && t->bias) old = take(t->bias + n + half * W, room);
                put(to, old + sum[i][half], room);
            }
    }
}

/* All of K, DEPTH at a time; a and b are those of the tile's first row and column. */
static void sum_tile(const struct product *p, const struct tile *t, const act *a, const act *b)
{
    _Alignas(64) float packed_a[TILE_M * DEPTH], packed_b[TILE_N * DEPTH];
    for (int64_t k = 0; k < p->K; k += DEPTH) {
        int64_t depth = at_most(DEPTH, p->K - k);
        pack(a + k * p->a_column, p->a_row, p->a_column, t->m, depth, TALL, packed_a);
        pack(b + k * p->b_row, p->b_column, p->b_row, t->n, depth, WIDE, packed_b);
        for (int64_t at = 0; at < t->n; at += WIDE)
            strips(t, packed_a, packed_b + at * depth, at, depth, k == 0);
    }
}

/* Sums become C; they are left alone where they are C. */
static void write_tile(const struct tile *t, act *c, int64_t ldc)
{
    for (int64_t m = 0; m < t->m; m++)
        for (int64_t n = 0; n < t->n; n += W)
            put_act(c + m * ldc + n, take(t->c + m * t->ldc + n, t->n - n), t->n - n);
}

static void tiles_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const struct product p = product_of(c);
    const bool narrow = c->out_type[0].dtype != DT_F32;
    int64_t down = ceil_div(p.M, TILE_M), across = ceil_div(p.N, TILE_N);
    _Alignas(64) float sums[TILE_M * TILE_N];
    for (int64_t item = first; item < last; item++) {
        int64_t batch = item / (down * across);
        int64_t m = item / across % down * TILE_M, n = item % across * TILE_N;
        int64_t corner = batch * p.M * p.N + m * p.N + n;
        struct tile t = {
            .m = at_most(TILE_M, p.M - m),
            .n = at_most(TILE_N, p.N - n),
            .bias = p.bias ? (const float *)c->in[2] + n : NULL,
            .c = narrow ? sums : (float *)c->out[0] + corner,
            .ldc = narrow ? TILE_N : p.N,
        };
        sum_tile(&p, &t, (const act *)c->in[0] + batch * p.M * p.K + m * p.a_row,
                 (const act *)c->in[1] + batch * p.K * p.N + n * p.b_column);
        if (narrow) write_tile(&t, (act *)c->out[0] + corner, p.N);
    }
}

static enum status run(const struct kernel_call *c)
{
    const struct product p = product_of(c);
    int64_t tiles = p.batch * ceil_div(p.M, TILE_M) * ceil_div(p.N, TILE_N);
    parallel_ranges(c, tiles, 1, p.batch * p.M * p.N * p.K / tiles / 16, tiles_range);
    return ST_OK;
}

static bool fits(const struct kernel_call *c)
{
    bool packed = c->n_in > 2 ? c->attr->linear.packed : c->attr->matmul.packed;
    return !packed &&
           (VEC(types_are)(c, ACT_DTYPE, "aaf", "a") || VEC(types_are)(c, ACT_DTYPE, "aaf", "f"));
}

#define BLOCKED VEC_TEXT(VEC(blocked))
const struct kernel ACT(blocked_rows)[] = {
    {.op = OP_MATMUL, .variant = BLOCKED, .fits = fits, .run = run},
    {.op = OP_LINEAR, .variant = BLOCKED, .fits = fits, .run = run},
    {0},
};
