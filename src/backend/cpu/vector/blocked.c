/* Blocked matmul without a library, for builds without oneDNN and for comparison with oneDNN.
 *
 * A tile of C is one work item. The rows of A and columns of B that the tile needs are packed as
 * fp32, DEPTH along K at a time, in the order in which the inner loop reads them. So the inner loop
 * does not depend on transposes, edges and the type of the inputs. It keeps TALL x 2W numbers of C
 * in registers. */
#include "backend/cpu/matmul/matmul.h"
#include "backend/cpu/vector/act.h"

#if defined(__AVX512F__)
enum { TALL = 12 }; /* 24 of 32 registers hold C */
#else
enum { TALL = 6 }; /* 12 of 16 registers hold C */
#endif
enum { WIDE = 2 * W, TILE_M = 8 * 12, TILE_N = 128, DEPTH = 192 };

struct tile {
    int64_t m, n;      /* rows and columns: at most TILE_M x TILE_N */
    const float *bias; /* NULL: no bias */
    float *c;          /* the sums: in C itself, or in a buffer if C is bf16 */
    int64_t ldc;
};

/* Packs n items (rows of A or columns of B) x depth as (strip, depth, item), with `width` items
 * in a strip; the last strip is padded with zeros. */
INLINE void pack(const act *x, int64_t item_stride, int64_t depth_stride, int64_t n, int64_t depth,
                 const int width, float *to)
{
    for (int64_t at = 0; at < n; at += width, x += width * item_stride, to += width * depth) {
        int64_t items = min_i64(width, n - at);
        if (items < width) memset(to, 0, (size_t)(width * depth) * sizeof *to);
        if (item_stride == 1 && items == width) {
            for (int64_t k = 0; k < depth; k++)
                for (int i = 0; i < width; i += W)
                    store(to + k * width + i, load_act(x + k * depth_stride + i, width - i),
                          width - i);
            continue;
        }
        for (int64_t i = 0; i < items; i++)
            for (int64_t k = 0; k < depth; k++)
                to[k * width + i] = act_at(x, i * item_stride + k * depth_stride);
    }
}

/* Adds `depth` products to each number of sum[TALL][2]: TALL rows and WIDE columns of C. */
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

/* Computes WIDE columns of a tile, from column n on: multiplies all strips of A by one strip of B.
 * If `first` is true, the sums start with the bias or 0, otherwise with C. */
static void strips(const struct tile *t, const float *a, const float *b, int64_t n, int64_t depth,
                   bool first)
{
    float *c = t->c + n;
    int64_t left = t->n - n;
    for (int64_t m = 0; m < t->m; m += TALL, a += TALL * depth) {
        vf sum[TALL][2] = {0};
        multiply(a, b, depth, sum);
        for (int64_t i = 0; i < min_i64(TALL, t->m - m); i++)
            for (int half = 0; half < 2 && left > half * W; half++) {
                float *to = c + (m + i) * t->ldc + half * W;
                int64_t columns = left - half * W;
                vf old = {0};
                if (!first) old = load(to, columns);
                if (first && t->bias) old = load(t->bias + n + half * W, columns);
                store(to, old + sum[i][half], columns);
            }
    }
}

static int64_t tiles_of(int64_t n, int64_t size)
{
    return ceil_div(n, size);
}

/* Computes the sums of a tile over all of K, DEPTH at a time. a and b point to the tile's first row
 * of A and first column of B. */
static void sum_tile(const struct matmul *p, const struct tile *t, const act *a, const act *b)
{
    _Alignas(64) float packed_a[TILE_M * DEPTH], packed_b[TILE_N * DEPTH];
    for (int64_t k = 0; k < p->K; k += DEPTH) {
        int64_t depth = min_i64(DEPTH, p->K - k);
        pack(a + k * p->a_column, p->a_row, p->a_column, t->m, depth, TALL, packed_a);
        pack(b + k * p->b_row, p->b_column, p->b_row, t->n, depth, WIDE, packed_b);
        for (int64_t at = 0; at < t->n; at += WIDE)
            strips(t, packed_a, packed_b + at * depth, at, depth, k == 0);
    }
}

/* Converts the sums of a tile to the type of C. */
static void write_tile(const struct tile *t, act *c, int64_t ldc)
{
    for (int64_t m = 0; m < t->m; m++)
        for (int64_t n = 0; n < t->n; n += W)
            store_act(c + m * ldc + n, load(t->c + m * t->ldc + n, t->n - n), t->n - n);
}

static void tiles_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const struct matmul p = matmul_of(c);
    const bool convert = c->out_type[0].dtype != DT_F32;
    int64_t down = tiles_of(p.M, TILE_M), across = tiles_of(p.N, TILE_N);
    _Alignas(64) float sums[TILE_M * TILE_N];
    for (int64_t item = first; item < last; item++) {
        int64_t batch = item / (down * across);
        int64_t m = item / across % down * TILE_M, n = item % across * TILE_N;
        int64_t corner = batch * p.M * p.N + m * p.N + n;
        struct tile t = {
            .m = min_i64(TILE_M, p.M - m),
            .n = min_i64(TILE_N, p.N - n),
            .bias = p.bias ? (const float *)c->in[2] + n : NULL,
            .c = convert ? sums : (float *)c->out[0] + corner,
            .ldc = convert ? TILE_N : p.N,
        };
        sum_tile(&p, &t, (const act *)c->in[0] + batch * p.M * p.K + m * p.a_row,
                 (const act *)c->in[1] + batch * p.K * p.N + n * p.b_column);
        if (convert) write_tile(&t, (act *)c->out[0] + corner, p.N);
    }
}

static enum status run(const struct kernel_call *c)
{
    const struct matmul p = matmul_of(c);
    int64_t tiles = p.batch * tiles_of(p.M, TILE_M) * tiles_of(p.N, TILE_N);
    parallel_ranges(c, tiles, 1, p.batch * p.M * p.N * p.K / tiles / 16, tiles_range);
    return ST_OK;
}

static bool fits(const struct kernel_call *c)
{
    bool packed = c->n_in > 2 ? c->attr->linear.packed : c->attr->matmul.packed;
    return !packed && (types_are(c, ACT_DTYPE, "aaf", "a") || types_are(c, ACT_DTYPE, "aaf", "f"));
}

#define BLOCKED VEC_STRING(VEC(blocked))
const struct kernel ACT(blocked_rows)[] = {
    {.op = OP_MATMUL, .variant = BLOCKED, .fits = fits, .run = run},
    {.op = OP_LINEAR, .variant = BLOCKED, .fits = fits, .run = run},
    {0},
};
