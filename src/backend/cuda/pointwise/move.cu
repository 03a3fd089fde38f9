/* move.cu - splits and merges heads: packed (B,T,(H+(P-1)*KV)*D) and P tensors (B,H,T,D). In parts
 * after the first, split repeats each of KV heads GROUP = H/KV times; merge sums them.
 *
 * WORD: bytes of a word, 2 to 16, the largest that divides a head's row; D is counted in words.
 * T_X: element type if GROUP > 1. Bound by memory: both sides are read or written once. A thread
 * moves TIMES words, adjacent threads adjacent words of the packed tensor: whole rows of heads. */
#include "device.cuh"

#define THREADS 256
enum { TIMES = 4 };
typedef word_of<WORD>::type word;

/* The part and the offset in it of word i of the packed tensor, in the first head of a group. */
struct slot {
    int part;
    u32 at;
};
DEVICE slot slot_of(u32 i, u32 T, u32 P, u32 H, u32 D)
{
    u32 KV = H / GROUP, heads = H + (P - 1) * KV;
    u32 row = i / D, d = i - row * D;
    u32 token = row / heads, h = row - token * heads, part = 0;
    if (h >= H) {
        part = 1 + (h - H) / KV;
        h = (h - H - (part - 1) * KV) * GROUP;
    }
    u32 b = token / T, t = token - b * T;
    slot s = {(int)part, ((b * H + h) * T + t) * D + d};
    return s;
}
template <typename W> DEVICE W *choose(int part, W *a, W *b, W *c, W *d)
{
    return part == 0 ? a : part == 1 ? b : part == 2 ? c : d;
}

#if GROUP > 1
/* The sum over a group's heads, `head` words apart. */
DEVICE word sum_of(const word *x, u32 head)
{
    enum { EACH = WORD / (int)sizeof(T_X) };
    floats<EACH> sum = load<EACH>((const T_X *)x);
#pragma unroll 4
    for (int r = 1; r < GROUP; r++) {
        floats<EACH> a = load<EACH>((const T_X *)(x + (i64)r * head));
        UNROLL for (int i = 0; i < EACH; i++) sum[i] += a[i];
    }
    word w;
    store<EACH>((T_X *)&w, sum);
    return w;
}
#endif

KERNEL(THREADS)
split_heads(const word *x, word *y0, word *y1, word *y2, word *y3, u32 n, u32 T, u32 P, u32 H,
            u32 D)
{
    const u32 first = blockIdx.x * (TIMES * THREADS) + threadIdx.x;
    word a[TIMES];
    UNROLL for (int k = 0; k < TIMES; k++)
        if (first + k * THREADS < n) a[k] = x[first + k * THREADS];
    UNROLL for (int k = 0; k < TIMES; k++) {
        if (first + k * THREADS >= n) continue;
        slot s = slot_of(first + k * THREADS, T, P, H, D);
        word *to = choose(s.part, y0, y1, y2, y3) + s.at;
        *to = a[k];
#if GROUP > 1
        for (int r = 1; s.part && r < GROUP; r++) to[(i64)r * (T * D)] = a[k];
#endif
    }
}

KERNEL(THREADS)
merge_heads(const word *x0, const word *x1, const word *x2, word *y, u32 n, u32 T, u32 P, u32 H,
            u32 D)
{
    const u32 first = blockIdx.x * (TIMES * THREADS) + threadIdx.x;
    word a[TIMES];
    UNROLL for (int k = 0; k < TIMES; k++) {
        if (first + k * THREADS >= n) continue;
        slot s = slot_of(first + k * THREADS, T, P, H, D);
        const word *from = choose(s.part, x0, x1, x2, x2) + s.at;
#if GROUP > 1
        a[k] = s.part ? sum_of(from, T * D) : *from;
#else
        a[k] = *from;
#endif
    }
    UNROLL for (int k = 0; k < TIMES; k++)
        if (first + k * THREADS < n) y[first + k * THREADS] = a[k];
}
