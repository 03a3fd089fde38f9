/* rope.cu - rotary position embedding: the first `heads` heads of D columns of each row, (even,
 * odd) -> (c even - s odd, s even + c odd), with c and s from a float table (T,D); the other
 * columns stay unchanged. T_X; D; EACH: elements of an access, a divisor of D and of the row
 * length.
 *
 * A thread has the same columns of up to TIMES heads of one row, so it reads the table once for all
 * of them; neighboring threads have neighboring columns, then heads. Bound by memory: 2 accesses
 * per rotated element and, unless y is x, 2 per other element. */
#include "elements.cuh"

enum { N = EACH, UNIT = N < 2 ? 2 : N, WORDS = UNIT / N, TIMES = 4, UNITS = D / UNIT };
#define EACH_TIME _Pragma("unroll") for (int k = 0; k < TIMES; k++)

DEVICE floats<UNIT> load_unit(const T_X *p)
{
    floats<UNIT> r;
    UNROLL for (int i = 0; i < WORDS; i++) {
        const floats<N> a = load<N>(p + i * N);
        UNROLL for (int e = 0; e < N; e++) r[i * N + e] = a[e];
    }
    return r;
}
DEVICE void store_unit(T_X *p, const floats<UNIT> &r)
{
    UNROLL for (int i = 0; i < WORDS; i++) {
        floats<N> a;
        UNROLL for (int e = 0; e < N; e++) a[e] = r[i * N + e];
        store<N>(p + i * N, a);
    }
}

/* Copies the columns from `first` of each row on. */
DEVICE void copy_rest(T_X *y, const T_X *x, i64 block, i64 rows, int C, int first)
{
    const int words = (C - first) / N;
    EACH_TIME {
        const i64 i = (block * TIMES + k) * THREADS + threadIdx.x;
        if (i >= rows * words) continue;
        const coord p = coord_of(i, words);
        const i64 at = p.row * C + first + p.column * N;
        store<N>(y + at, load<N>(x + at));
    }
}

/* `groups` threads share a row's heads. With sign -1 the rotation is inverted. Blocks from number
 * `turning` on copy the other columns. */
KERNEL(THREADS)
rope(T_X *y, const T_X *x, const float *table, i64 rows, int T, int C, int heads, int groups,
     float sign, int turning)
{
    if ((int)blockIdx.x >= turning) {
        if (y != x) copy_rest(y, x, (int)blockIdx.x - turning, rows, C, heads * D);
        return;
    }
    const coord unit = coord_of((i64)blockIdx.x * THREADS + threadIdx.x, UNITS),
                group = coord_of(unit.row, groups);
    if (group.row >= rows) return;
    const i64 first = group.row * C + unit.column * UNIT;
    floats<UNIT> v[TIMES];
    EACH_TIME {
        const int head = group.column + k * groups;
        if (head < heads) v[k] = load_unit(x + first + head * D);
    }
    const floats<UNIT> angle =
        load<UNIT>(table + coord_of(group.row, T).column * D + unit.column * UNIT);
    EACH_TIME {
        const int head = group.column + k * groups;
        if (head >= heads) continue;
        UNROLL for (int e = 0; e < UNIT; e += 2) {
            const float even = v[k][e], odd = v[k][e + 1], c = angle[e], s = sign * angle[e + 1];
            v[k][e] = c * even - s * odd;
            v[k][e + 1] = s * even + c * odd;
        }
        store_unit(y + first + head * D, v[k]);
    }
}
