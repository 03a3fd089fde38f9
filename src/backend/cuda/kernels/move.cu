/* move.cu - heads apart and together: packed (B,T,P*H*D) and P tensors (B,H,T,D).
 *
 * WORD: bytes of a word, 2 to 16, the largest that a head's row is made of; D is counted in words. Bound by memory:
 * all is read once and written once; a thread moves TIMES words, side by side in the packed tensor, so a warp
 * touches whole rows of heads in the others. */
#include "device.cuh"

#define THREADS 256
enum { TIMES = 4 };
typedef word_of<WORD>::type word;

/* Which of the P tensors holds word i of the packed one, and where. */
struct seat {
    int part;
    u32 at;
};
DEVICE seat seat_of(u32 i, u32 T, u32 P, u32 H, u32 D)
{
    u32 row = i / D, d = i - row * D;
    u32 group = row / H, h = row - group * H;
    u32 token = group / P, part = group - token * P;
    u32 b = token / T, t = token - b * T;
    seat s = {(int)part, ((b * H + h) * T + t) * D + d};
    return s;
}
template <typename W> DEVICE W *choose(int part, W *a, W *b, W *c, W *d)
{
    return part == 0 ? a : part == 1 ? b : part == 2 ? c : d;
}

KERNEL(THREADS) split_heads(const word *x, word *y0, word *y1, word *y2, word *y3, u32 n, u32 T, u32 P, u32 H,
                            u32 D)
{
    const u32 first = blockIdx.x * (TIMES * THREADS) + threadIdx.x;
    word a[TIMES];
#pragma unroll
    for (int k = 0; k < TIMES; k++)
        if (first + k * THREADS < n) a[k] = x[first + k * THREADS];
#pragma unroll
    for (int k = 0; k < TIMES; k++) {
        if (first + k * THREADS >= n) continue;
        seat s = seat_of(first + k * THREADS, T, P, H, D);
        choose(s.part, y0, y1, y2, y3)[s.at] = a[k];
    }
}

KERNEL(THREADS) merge_heads(const word *x0, const word *x1, const word *x2, word *y, u32 n, u32 T, u32 P, u32 H,
                            u32 D)
{
    const u32 first = blockIdx.x * (TIMES * THREADS) + threadIdx.x;
    word a[TIMES];
#pragma unroll
    for (int k = 0; k < TIMES; k++) {
        if (first + k * THREADS >= n) continue;
        seat s = seat_of(first + k * THREADS, T, P, H, D);
        a[k] = choose(s.part, x0, x1, x2, x2)[s.at];
    }
#pragma unroll
    for (int k = 0; k < TIMES; k++)
        if (first + k * THREADS < n) y[first + k * THREADS] = a[k];
}
