/* 05_registers.cu - the row stays in registers; 16 bytes per access.
 *
 * A multiprocessor has 256 KiB of registers, more than its shared memory, and they need no load to
 * be read again. Each thread asks for 32 bytes of the row, 16 at a time, before it uses the first:
 * enough bytes are under way to keep memory busy while other blocks compute. So 4096 floats need
 * 512 threads and 4096 bf16 256; a multiprocessor then holds four or six blocks (KERNEL_MIN).
 * Elements beyond the row count as minus infinity, whose exponential is 0. What does not fit into
 * these registers, from element 4096 on, is read again in each pass. If a row is not a multiple of
 * 16 bytes long, rows begin anywhere and each access takes one element. */
#include "rows.cuh"

constexpr bool WIDE = sizeof(ELEMENT) == 4;
constexpr int THREADS_OF_ROW = WIDE ? 512 : 256, BLOCKS = WIDE ? 4 : 6;

template <int EACH> DEVICE floats<EACH> load_part(const ELEMENT *x, int i, int columns)
{
    floats<EACH> r;
    if (i < columns) return WIDE ? load<EACH>(x + i) : load_streaming<EACH>(x + i);
    UNROLL for (int e = 0; e < EACH; e++) r[e] = -INFINITY_F;
    return r;
}
template <int EACH> DEVICE float largest(const floats<EACH> &a)
{
    float r = a[0];
    UNROLL for (int e = 1; e < EACH; e++) r = fmaxf(r, a[e]);
    return r;
}
/* Replaces elements by their exponentials and returns the sum of these. */
template <int EACH> DEVICE float exponentials(floats<EACH> &a, float most)
{
    float sum = 0;
    UNROLL for (int e = 0; e < EACH; e++) sum += a[e] = exp_for<ELEMENT>(a[e] - most);
    return sum;
}
template <int EACH> DEVICE void store_times(ELEMENT *y, floats<EACH> a, float factor)
{
    UNROLL for (int e = 0; e < EACH; e++) a[e] *= factor;
    store<EACH>(y, a);
}

template <int EACH> DEVICE void softmax_row(ELEMENT *y, const ELEMENT *x, int columns)
{
    constexpr int HELD = 4096 / THREADS_OF_ROW / EACH, STEP = THREADS_OF_ROW * EACH;
    floats<EACH> v[HELD], a;
    float most = LOWEST_F, sum = 0;
    int own = threadIdx.x * EACH, rest = own + HELD * STEP;
    UNROLL for (int k = 0; k < HELD; k++) v[k] = load_part<EACH>(x, own + k * STEP, columns);
    UNROLL for (int k = 0; k < HELD; k++) most = fmaxf(most, largest(v[k]));
    for (int i = rest; i < columns; i += STEP) most = fmaxf(most, largest(load<EACH>(x + i)));
    most = block_max<THREADS_OF_ROW>(most);
    UNROLL for (int k = 0; k < HELD; k++) sum += exponentials(v[k], most);
    for (int i = rest; i < columns; i += STEP) {
        a = load<EACH>(x + i);
        sum += exponentials(a, most);
    }
    float factor = 1 / block_sum<THREADS_OF_ROW>(sum);
    UNROLL for (int k = 0; k < HELD; k++)
        if (own + k * STEP < columns) store_times(y + own + k * STEP, v[k], factor);
    for (int i = rest; i < columns; i += STEP) {
        a = load<EACH>(x + i);
        exponentials(a, most);
        store_times(y + i, a, factor);
    }
}

KERNEL_MIN(THREADS_OF_ROW, BLOCKS) softmax(ELEMENT *y, const ELEMENT *x, i64 rows, i64 columns)
{
    constexpr int EACH = 16 / sizeof(ELEMENT);
    x += blockIdx.x * columns;
    y += blockIdx.x * columns;
    if (columns % EACH == 0)
        softmax_row<EACH>(y, x, (int)columns);
    else
        softmax_row<1>(y, x, (int)columns);
}
