/* loss.cu - cross-entropy over rows of logits (rows, columns): lse = log sum e^x over the first
 * `vocab` columns; loss = lse - x[target], accurate near 0, averaged over the rows; gradient =
 * (softmax - one-hot of the target) dloss / rows, 0 in the padding columns.
 *
 * T_X: logits and their gradient, which may share memory; LANES: threads of a row (rows.cuh); HELD:
 * the row stays in shared memory between its uses: vocab * sizeof(T_X) bytes, rounded down to 16.
 *
 * Bound by memory: each logit is read once and, for the gradient, written once. With 50304 bf16
 * columns two blocks fit on an SM, so copies of one overlap exponentials of the other (two an
 * element, 60 % of the peak). Misaligned rows (50257 columns) are as fast. Deterministic. */
#include "rows.cuh"

/* The first n elements of a row consist of `head` elements before the first aligned word of 16
 * bytes, `words` such words, and elements after the last word. `edges` is the number of elements
 * before the first and after the last word, fewer than 2 N; a lane has at most one such element. */
struct run {
    enum { N = 16 / (int)sizeof(T_X) };
    int head, words, edges;
};
DEVICE run run_of(i64 first, int n)
{
    run r;
    r.head = min((int)(-first & (run::N - 1)), n);
    r.words = (n - r.head) / run::N;
    r.edges = n - r.words * run::N;
    return r;
}
/* The column of this lane's edge element, or -1. */
DEVICE int edge_column(const run &r)
{
    int lane = lane_of_row();
    return lane >= r.edges ? -1 : lane < r.head ? lane : r.words * run::N + lane;
}

/* Running maximum, and sum of e^(x - top). `top` starts at the lowest finite number, not at minus
 * infinity, so infinities are never subtracted; a row of minus infinities keeps the sum 0. */
struct partial {
    float top, sum;
};
template <int N> DEVICE void add(partial &t, const floats<N> &x)
{
    float most = x[0];
    UNROLL for (int e = 1; e < N; e++) most = fmaxf(most, x[e]);
    if (most > t.top) {
        t.sum *= exp_for<T_X>(t.top - most);
        t.top = most;
    }
    float sum[N];
    UNROLL for (int e = 0; e < N; e++) sum[e] = exp_for<T_X>(x[e] - t.top);
    UNROLL for (int d = 1; d < N; d *= 2) UNROLL for (int e = 0; e < N; e += 2 * d) sum[e] +=
        sum[e + d];
    t.sum += sum[0];
}
/* Adds minus infinity instead of the target's element, which in a learned row is so large that the
 * other elements would be rounded away. */
template <int N> DEVICE void add_without(partial &t, floats<N> x, int target)
{
    UNROLL for (int e = 0; e < N; e++) if (e == target) x[e] = -INFINITY_F;
    add<N>(t, x);
}

/* Statistics of a row: the largest logit; the sums of e^(x - top) without the target, and with it;
 * the loss, NaN if the target is invalid. */
struct row_stats {
    float top, others, sum, loss;
};
/* Combines all lanes; each gets the result. at_target: the target's logit, NaN if the target is
 * invalid. */
DEVICE row_stats join_lanes(const partial &mine, float at_target, bool valid)
{
    row_stats s;
    s.top = row_max(valid ? fmaxf(mine.top, at_target) : mine.top);
    s.others = row_sum(mine.sum * exp_for<T_X>(mine.top - s.top));
    const float own = valid ? exp_for<T_X>(at_target - s.top) : 0.0f;
    s.sum = s.others + own;
    s.loss = log1pf(own - 1.0f + s.others) + (s.top - at_target);
    return s;
}

#if HELD
extern __shared__ __align__(1024) u8 shared_memory[];
DEVICE T_X *held(int word)
{
    return (T_X *)shared_memory + word * run::N;
}
/* Words are copied in PARTS groups, so that the first words are processed while later ones are in
 * flight. Each lane reads only the words that it copied itself, so no barrier is needed. */
enum { PARTS = 4 };
DEVICE int part_words(const run &r)
{
    return ceil_div(r.words, PARTS * LANES) * LANES;
}
DEVICE void copy_row(const run &r, const T_X *x)
{
    int each = part_words(r);
    for (int k = 0; k < PARTS; k++) {
        int end = min((k + 1) * each, r.words);
        for (int i = k * each + lane_of_row(); i < end; i += LANES)
            cp_async_16(shared_address(held(i)), x + r.head + i * run::N, 16);
        cp_async_commit();
    }
}
template <int LEFT> DEVICE void add_held(partial &t, const run &r, int hole, int of_hole)
{
    int each = part_words(r), k = PARTS - 1 - LEFT, end = min((k + 1) * each, r.words);
    cp_async_wait<LEFT>();
    if (hole >= k * each && hole < end && hole % LANES == lane_of_row())
        held(hole)[of_hole] = to<T_X>(-INFINITY_F); /* write_row writes the target by itself */
    for (int i = k * each + lane_of_row(); i < end; i += LANES)
        add<run::N>(t, load<run::N>(held(i)));
    if constexpr (LEFT > 0) add_held<LEFT - 1>(t, r, hole, of_hole);
}
#endif

/* This lane's partial sum over the first `vocab` columns of row x (run r), without the target. */
DEVICE partial partial_of(const run &r, const T_X *x, int target)
{
    partial t = {LOWEST_F, 0};
    const int hole = target < r.head ? -1 : (target - r.head) / run::N; /* the target's word */
    const int of_hole = (target - r.head) % run::N;
#if HELD
    copy_row(r, x);
#endif
    int column = edge_column(r);
    if (column >= 0 && column != target) {
        floats<1> one = {{to_float(x[column])}};
        add<1>(t, one);
    }
#if HELD
    add_held<PARTS - 1>(t, r, hole, of_hole);
#else
    enum { AHEAD = sizeof(T_X) == 2 ? 2 : 4 };
    int i = lane_of_row();
    for (; i + (AHEAD - 1) * LANES < r.words; i += AHEAD * LANES) {
        floats<run::N> v[AHEAD];
        UNROLL for (int k = 0; k < AHEAD; k++) v[k] =
            load<run::N>(x + r.head + (i + k * LANES) * run::N);
        UNROLL for (int k = 0; k < AHEAD; k++)
            add_without<run::N>(t, v[k], i + k * LANES == hole ? of_hole : -1);
    }
    for (; i < r.words; i += LANES)
        add_without<run::N>(t, load<run::N>(x + r.head + i * run::N), i == hole ? of_hole : -1);
#endif
    return t;
}

/* dx = factor e^(x - shift), except for `at_target` in the target's column, if the target is valid.
 * dx may be x. */
DEVICE void write_row(const run &r, const T_X *x, T_X *dx, float shift, float factor,
                      float at_target, int target, int vocab, int columns)
{
    int column = edge_column(r);
    if (column >= 0) dx[column] = to<T_X>(factor * exp_for<T_X>(to_float(x[column]) - shift));
#pragma unroll 2
    for (int i = lane_of_row(); i < r.words; i += LANES) {
#if HELD
        floats<run::N> v = load<run::N>(held(i));
#else
        floats<run::N> v = load<run::N>(x + r.head + i * run::N);
#endif
        UNROLL for (int e = 0; e < run::N; e++) v[e] = factor * exp_for<T_X>(v[e] - shift);
        store<run::N>(dx + r.head + i * run::N, v);
    }
    for (int i = vocab + lane_of_row(); i < columns; i += LANES) dx[i] = to<T_X>(0);
    row_sync(); /* another lane wrote the target's element */
    if (lane_of_row() == 0 && (u32)target < (u32)vocab) dx[target] = to<T_X>(at_target);
}

/* The target's logit. The logit of an invalid target is not read but is NaN, which makes the loss
 * NaN. */
DEVICE float logit_at(const T_X *x, int target, int vocab)
{
    return (u32)target < (u32)vocab ? to_float(x[target]) : NAN_F;
}

#if !HELD
/* losses: one per row, for mean_loss. */
KERNEL(ROW_THREADS)
cross_entropy(float *losses, float *lse, const T_X *logits, const int *targets, int rows,
              int columns, int vocab)
{
    const i64 row = row_of_lane();
    if (row >= rows) return;
    const T_X *x = logits + row * columns;
    const int target = targets[row];
    partial t = partial_of(run_of(row * columns, vocab), x, target);
    row_stats s = join_lanes(t, logit_at(x, target, vocab), (u32)target < (u32)vocab);
    if (lane_of_row() != 0) return;
    lse[row] = s.top + logf(s.sum);
    losses[row] = s.loss;
}

KERNEL(ROW_THREADS)
cross_entropy_grad(T_X *dlogits, const T_X *logits, const int *targets, const float *lse,
                   const float *dloss, int rows, int columns, int vocab)
{
    const i64 row = row_of_lane();
    if (row >= rows) return;
    const T_X *x = logits + row * columns;
    const int target = targets[row];
    const float scale = *dloss / (float)rows;
    const float p = exp_for<T_X>(logit_at(x, target, vocab) - lse[row]);
    row_sync(); /* the target's logit is read before it is overwritten */
    write_row(run_of(row * columns, vocab), x, dlogits + row * columns, lse[row], scale,
              scale * p - scale, target, vocab, columns);
}
#endif

KERNEL(ROW_THREADS)
cross_entropy_both(T_X *dlogits, float *losses, const T_X *logits, const int *targets,
                   const float *dloss, int rows, int columns, int vocab)
{
    const i64 row = row_of_lane();
    if (row >= rows) return;
    const T_X *x = logits + row * columns;
    const run r = run_of(row * columns, vocab);
    const int target = targets[row];
    const float scale = *dloss / (float)rows, at_target = logit_at(x, target, vocab);
    partial t = partial_of(r, x, target);
    row_stats s = join_lanes(t, at_target, (u32)target < (u32)vocab);
    if (lane_of_row() == 0) losses[row] = s.loss;
    row_sync(); /* all logits, also the target's, are read before they are overwritten */
    const float factor = scale / s.sum;
    write_row(r, x, dlogits + row * columns, s.top, factor, -factor * s.others, target, vocab,
              columns);
}

#define MEAN_THREADS 1024
KERNEL(MEAN_THREADS) mean_loss(float *mean, const float *losses, int rows)
{
    float sum = 0;
    for (int i = threadIdx.x; i < rows; i += MEAN_THREADS) sum += losses[i];
    sum = block_sum<MEAN_THREADS>(sum);
    if (threadIdx.x == 0) *mean = sum / (float)rows;
}
