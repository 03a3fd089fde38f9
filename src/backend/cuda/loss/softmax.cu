/* softmax.cu - softmax of rows of COLUMNS elements and its gradient; rows stay in registers.
 *
 * T_X: type of all tensors; LANES: threads of a row (rows.cuh). SCORE: the rows are rows of
 * attention matrices (B,H,T,T), with a scale; with CAUSAL, row q has columns 0 ... q open (the
 * other columns are not read and become 0); with DROP, dropout of the probabilities.
 *
 * A group of lanes processes the four rows of a dropout set (device.cuh), {2a,2a+1,2a+8,2a+9} of
 * 16, which share Philox calls; without SCORE, four consecutive rows. A lane has 4 columns a step.
 *
 * Bound by memory: 2 accesses per element, 3 with dropout or in the gradient; causal rows read
 * half. Dropout adds 7 instructions to 10 per element. */
#include "rows.cuh"

enum { N = 4, STEPS = ceil_div(COLUMNS, N * LANES) };
#define EACH_STEP _Pragma("unroll") for (int s = 0; s < STEPS; s++)
#define EACH_ELEMENT _Pragma("unroll") for (int e = 0; e < N; e++)

/* The lane's first column, 4 lane. With `left` open columns from there on, element e of step s is
 * open if left > ahead(s, e), a comparison with a constant. */
DEVICE int first_column()
{
    return lane_of_row() * N;
}
DEVICE constexpr int ahead(int s, int e)
{
    return s * LANES * N + e;
}

/* p: the lane's first column. Closed elements become `fill`. */
DEVICE void load_row(floats<N> (&v)[STEPS], const T_X *p, int left, float fill)
{
    EACH_STEP {
        EACH_ELEMENT v[s][e] = fill;
        if (COLUMNS % N == 0) {
            if (left > ahead(s, 0)) v[s] = load<N>(p + ahead(s, 0));
        } else {
            EACH_ELEMENT if (left > ahead(s, e)) v[s][e] = to_float(p[ahead(s, e)]);
        }
        EACH_ELEMENT v[s][e] = left > ahead(s, e) ? v[s][e] : fill;
    }
}
/* Closed elements become zero. */
DEVICE void store_row(T_X *p, floats<N> (&v)[STEPS], int left)
{
    const int columns = COLUMNS - first_column();
    EACH_STEP {
        EACH_ELEMENT v[s][e] = left > ahead(s, e) ? v[s][e] : 0.0f;
        if (COLUMNS % N == 0) {
            if (columns > ahead(s, 0)) store<N>(p + ahead(s, 0), v[s]);
        } else {
            EACH_ELEMENT if (columns > ahead(s, e)) p[ahead(s, e)] = to<T_X>(v[s][e]);
        }
    }
}

/* The rows of an item: row i is `first` + offset(i), if `rows` and its matrix reach that far. */
struct item {
    i64 first; /* row over all matrices */
    int bh, q; /* SCORE: head, row of its matrix */
};
#define ITEM_ROWS 4
DEVICE int offset(int i)
{
    return SCORE ? i % 2 + i / 2 * 8 : i;
}
DEVICE item item_of_lane()
{
    const i64 n = row_of_lane();
    item t = {n * ITEM_ROWS, 0, 0};
    if (SCORE) {
        const int of_head = (COLUMNS + 15) / 16 * 4, rest = (int)(n % of_head);
        t.bh = (int)(n / of_head);
        t.q = rest / 4 * 16 + rest % 4 * 2;
        t.first = (i64)t.bh * COLUMNS + t.q;
    }
    return t;
}
DEVICE bool row_is_there(const item &t, int i, i64 rows)
{
    return t.first + offset(i) < rows && (!SCORE || t.q + offset(i) < COLUMNS);
}
DEVICE int open_columns(const item &t, int i)
{
    return SCORE && CAUSAL ? t.q + offset(i) + 1 : COLUMNS;
}

#if DROP
/* Bit 4s + e of keep[i]: row i keeps element e of step s. Four lanes have 16 columns; a lane
 * generates the words of columns {2b,2b+1,2b+8,2b+9} of these, b = lane % 4, and passes the bits to
 * the lanes that have these columns. */
static_assert(STEPS <= 8, "four bits a step");
DEVICE void random_keep_bits(u32 (&keep)[ITEM_ROWS], const item &t, u32 seed, u32 site, u32 step,
                             int threshold)
{
    const int lane = threadIdx.x % WARP, b = lane % 4;
    u32 bits[ITEM_ROWS] = {0};
    EACH_STEP {
        const int k16 = (first_column() + ahead(s, 0)) / 16;
        if (k16 * 16 >= COLUMNS || k16 * 16 >= open_columns(t, ITEM_ROWS - 1)) continue;
        words w = dropout_attention(seed, site, step, (u32)t.bh, (u32)t.q / 16, (u32)k16,
                                    (u32)t.q % 16 / 2, (u32)b);
        UNROLL for (int i = 0; i < ITEM_ROWS; i++)
            EACH_ELEMENT if (byte_at(w.w[i], e) >= threshold) bits[i] |= 1u << (N * s + e);
    }
    UNROLL for (int i = 0; i < ITEM_ROWS; i++) {
        const int from = lane - b + b % 2 * 2, shift = b / 2 * 2;
        u32 low = __shfl_sync(~0u, bits[i], from) >> shift,
            high = __shfl_sync(~0u, bits[i], from + 1) >> shift;
        keep[i] = (low & 0x33333333u) | (high & 0x33333333u) << 2;
    }
}
#endif

/* Blocks per SM for which 1024 columns still do not spill. */
#define FORWARD_BLOCKS (LANES == WARP ? 6 : 1)
#define GRAD_BLOCKS (LANES == WARP ? DROP ? 4 : 5 : 1)

/* y may be x. rows: of all matrices. */
KERNEL_MIN(ROW_THREADS, FORWARD_BLOCKS)
softmax(T_X *y,
#if DROP
        T_X *dropped, const int *step, u32 seed, u32 site, int threshold,
#endif
        const T_X *x, float scale, i64 rows)
{
    const item t = item_of_lane();
    if (t.first >= rows) return;
#if DROP
    u32 keep[ITEM_ROWS];
    random_keep_bits(keep, t, seed, site, (u32)*step, threshold);
    const float kept = dropout_scale(threshold);
#endif
#pragma unroll 1
    for (int i = 0; i < ITEM_ROWS; i++) {
        if (!row_is_there(t, i, rows)) continue;
        const i64 at = (t.first + offset(i)) * COLUMNS + first_column();
        const int left = open_columns(t, i) - first_column();
        floats<N> v[STEPS];
        load_row(v, x + at, left, -INFINITY_F);
        float top = -INFINITY_F, sum = 0;
        EACH_STEP {
            if (SCORE) EACH_ELEMENT v[s][e] = left > ahead(s, e) ? v[s][e] * scale : -INFINITY_F;
            top = fmaxf(top, fmaxf(fmaxf(v[s][0], v[s][1]), fmaxf(v[s][2], v[s][3])));
        }
        top = row_max(top);
        EACH_STEP {
            EACH_ELEMENT v[s][e] = exp_for<T_X>(v[s][e] - top);
            sum += (v[s][0] + v[s][1]) + (v[s][2] + v[s][3]);
        }
        const float inverse = 1.0f / row_sum(sum);
        EACH_STEP EACH_ELEMENT v[s][e] *= inverse;
        store_row(y + at, v, left);
#if DROP
        u32 mine = i == 0 ? keep[0] : i == 1 ? keep[1] : i == 2 ? keep[2] : keep[3];
        EACH_STEP EACH_ELEMENT v[s][e] = mine >> (N * s + e) & 1 ? v[s][e] * kept : 0.0f;
        store_row(dropped + at, v, left);
#endif
    }
}

/* dx = scale y (d - sum of d y), where d is dy after the dropout of y; dx may be dy. */
KERNEL_MIN(ROW_THREADS, GRAD_BLOCKS)
softmax_grad(T_X *dx, const T_X *dy, const T_X *y,
#if DROP
             const int *step, u32 seed, u32 site, int threshold,
#endif
             float scale, i64 rows)
{
    const item t = item_of_lane();
    if (t.first >= rows) return;
#if DROP
    u32 keep[ITEM_ROWS];
    random_keep_bits(keep, t, seed, site, (u32)*step, threshold);
    const float kept = dropout_scale(threshold);
#endif
#pragma unroll 1
    for (int i = 0; i < ITEM_ROWS; i++) {
        if (!row_is_there(t, i, rows)) continue;
        const i64 at = (t.first + offset(i)) * COLUMNS + first_column();
        const int left = open_columns(t, i) - first_column();
        floats<N> d[STEPS], p[STEPS];
        load_row(d, dy + at, left, 0);
        load_row(p, y + at, left, 0);
#if DROP
        u32 mine = i == 0 ? keep[0] : i == 1 ? keep[1] : i == 2 ? keep[2] : keep[3];
        EACH_STEP EACH_ELEMENT d[s][e] = mine >> (N * s + e) & 1 ? d[s][e] * kept : 0.0f;
#endif
        float dot = 0;
        EACH_STEP dot +=
            (d[s][0] * p[s][0] + d[s][1] * p[s][1]) + (d[s][2] * p[s][2] + d[s][3] * p[s][3]);
        dot = row_sum(dot);
        EACH_STEP EACH_ELEMENT d[s][e] = scale * p[s][e] * (d[s][e] - dot);
        store_row(dx + at, d, left);
    }
}
