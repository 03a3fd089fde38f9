/* device.cuh - for all kernel sources: types, vector loads and stores, reductions, random bytes.
 *
 * Compiled at run time without system headers. Lengths are int, numbers of elements long long.
 * Arithmetic is in float unless a source says otherwise; bf16 is a storage format only. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

/* The upper 16 bits of a float. */
struct bf16 {
    u16 bits;
};

#define DEVICE static __device__ __forceinline__
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
/* Requires at least `blocks` resident blocks on an SM, which limits the registers of a thread. */
#define KERNEL_MIN(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
#define UNROLL _Pragma("unroll") /* before a loop */
#define WARP 32
#define INFINITY_F __int_as_float(0x7f800000)
#define LOWEST_F   -3.402823466e38f
#define LOG2_E     1.44269504088896341f
#define LN_2       0.693147180559945309f

/* ceil_div: n / by, rounded up, for n >= 0 and by > 0. round_up: n rounded up to a multiple. */
DEVICE constexpr int ceil_div(int n, int by)
{
    return (n + by - 1) / by;
}
DEVICE constexpr int round_up(int n, int to)
{
    return ceil_div(n, to) * to;
}

/* Conversions. Conversion to bf16 rounds to nearest even. */
DEVICE float to_float(float a)
{
    return a;
}
DEVICE float to_float(double a)
{
    return (float)a;
}
DEVICE float to_float(int a)
{
    return (float)a;
}
DEVICE float to_float(bf16 a)
{
    return __uint_as_float((u32)a.bits << 16);
}
/* Packs two floats as bf16; `low` goes to the lower half. */
DEVICE u32 pack_bf16(float low, float high)
{
#if __CUDA_ARCH__ >= 800
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
#else
    u32 a = __float_as_uint(low), b = __float_as_uint(high);
    a = low != low ? 0x7fffu : (a + 0x7fffu + (a >> 16 & 1)) >> 16;
    b = high != high ? 0x7fffu : (b + 0x7fffu + (b >> 16 & 1)) >> 16;
    return a | b << 16;
#endif
}
template <typename T> struct from_float;
template <> struct from_float<float> {
    DEVICE float of(float a) { return a; }
};
template <> struct from_float<bf16> {
    DEVICE bf16 of(float a)
    {
        bf16 r;
        r.bits = (u16)pack_bf16(a, 0);
        return r;
    }
};
template <> struct from_float<double> {
    DEVICE double of(float a) { return a; }
};
template <> struct from_float<int> {
    DEVICE int of(float a) { return (int)a; }
};
template <typename T> DEVICE T to(float a)
{
    return from_float<T>::of(a);
}

/* N elements as floats. An access of N * sizeof(T) bytes, a power of two, is aligned to its size;
 * more than 16 bytes take several accesses. */
template <int N> struct floats {
    float v[N];
    __device__ __forceinline__ float &operator[](int i) { return v[i]; }
    __device__ __forceinline__ const float &operator[](int i) const { return v[i]; }
};
template <int BYTES> struct word_of;
template <> struct word_of<2> {
    typedef u16 type;
};
template <> struct word_of<4> {
    typedef u32 type;
};
template <> struct word_of<8> {
    typedef uint2 type;
};
template <> struct word_of<16> {
    typedef uint4 type;
};
template <int N, typename T> struct vector_of {
    enum { BYTES = N * (int)sizeof(T), ACCESS = BYTES > 16 ? 16 : BYTES, TIMES = BYTES / ACCESS };
    typedef typename word_of<ACCESS>::type word;
    union {
        T x[N];
        word w[TIMES];
    };
    __device__ __forceinline__ vector_of() {}
};
template <int N, typename T> DEVICE floats<N> load(const T *p)
{
    vector_of<N, T> a;
    floats<N> r;
    UNROLL for (int i = 0; i < vector_of<N, T>::TIMES; i++)
        a.w[i] = ((const typename vector_of<N, T>::word *)p)[i];
    UNROLL for (int i = 0; i < N; i++) r[i] = to_float(a.x[i]);
    return r;
}
/* Like load, for data that this kernel reads once and does not write: the caches evict it first. */
template <int N, typename T> DEVICE floats<N> load_streaming(const T *p)
{
    vector_of<N, T> a;
    floats<N> r;
    UNROLL for (int i = 0; i < vector_of<N, T>::TIMES; i++)
        a.w[i] = __ldcs((const typename vector_of<N, T>::word *)p + i);
    UNROLL for (int i = 0; i < N; i++) r[i] = to_float(a.x[i]);
    return r;
}
/* The words of a vector access are assembled explicitly, because the compiler might split a store
 * of a struct into four. */
DEVICE void store_words(u16 *p, const u32 (&w)[1])
{
    *(u32 *)p = w[0];
}
DEVICE void store_words(u16 *p, const u32 (&w)[2])
{
    *(uint2 *)p = make_uint2(w[0], w[1]);
}
template <int WORDS> DEVICE void store_words(u16 *p, const u32 (&w)[WORDS])
{
    UNROLL for (int i = 0; i < WORDS / 4; i++)
        ((uint4 *)p)[i] = make_uint4(w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]);
}
template <int N, typename T> DEVICE void store(T *p, const floats<N> &f)
{
    if constexpr (sizeof(T) == 2 && N > 1) {
        u32 w[N / 2];
        UNROLL for (int i = 0; i < N / 2; i++) w[i] = pack_bf16(f[2 * i], f[2 * i + 1]);
        store_words((u16 *)p, w);
    } else {
        vector_of<N, T> a;
        UNROLL for (int i = 0; i < N; i++) a.x[i] = to<T>(f[i]);
        UNROLL for (int i = 0; i < vector_of<N, T>::TIMES; i++)
            ((typename vector_of<N, T>::word *)p)[i] = a.w[i];
    }
}

/* Sums and maxima over a warp or a block. Every thread of the warp or block gets the result. The
 * order of additions is always the same. */
DEVICE float warp_sum(float a)
{
    UNROLL for (int d = WARP / 2; d; d /= 2) a += __shfl_xor_sync(~0u, a, d);
    return a;
}
DEVICE float warp_max(float a)
{
    UNROLL for (int d = WARP / 2; d; d /= 2) a = fmaxf(a, __shfl_xor_sync(~0u, a, d));
    return a;
}
/* The block has THREADS threads, a multiple of 32; all must call. Calls need no barrier between
 * them. */
template <int THREADS> DEVICE float block_sum(float a)
{
    __shared__ float part[THREADS / WARP];
    a = warp_sum(a);
    if (THREADS == WARP) return a;
    __syncthreads(); /* earlier readers of part */
    if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = a;
    __syncthreads();
    a = 0;
    UNROLL for (int i = 0; i < THREADS / WARP; i++) a += part[i];
    return a;
}
template <int THREADS> DEVICE float block_max(float a)
{
    __shared__ float part[THREADS / WARP];
    a = warp_max(a);
    if (THREADS == WARP) return a;
    __syncthreads();
    if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = a;
    __syncthreads();
    a = part[0];
    UNROLL for (int i = 1; i < THREADS / WARP; i++) a = fmaxf(a, part[i]);
    return a;
}

/* Philox 4x32-10 as in base/rng.h; stream 3 is for dropout. */
struct words {
    u32 w[4];
};
DEVICE words philox(u32 seed, u32 stream, u32 c0, u32 c1, u32 c2, u32 c3)
{
    u32 k0 = seed, k1 = stream;
    UNROLL for (int round = 0; round < 10; round++) {
        u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
        c0 = (u32)(p1 >> 32) ^ c1 ^ k0;
        c1 = (u32)p1;
        c2 = (u32)(p0 >> 32) ^ c3 ^ k1;
        c3 = (u32)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    words r = {{c0, c1, c2, c3}};
    return r;
}
#define STREAM_DROPOUT 3
/* 16 bytes of a pointwise dropout site: element i uses byte i % 16 of call i / 16. The element is
 * kept if the byte is >= the threshold, and multiplied by 256 / (256 - threshold). */
DEVICE words dropout_pointwise(u32 seed, u32 site, u32 step, u64 call)
{
    return philox(seed, STREAM_DROPOUT, (u32)call, (u32)(call >> 32), site, step);
}
/* 16 bytes for a 4x4 set of the attention matrix of head bh = b*H+h: rows {2a,2a+1,2a+8,2a+9} x
 * columns {2b,2b+1,2b+8,2b+9} of the 16x16 block (q16, k16). Word i: row i; byte j: column j. */
DEVICE words dropout_attention(u32 seed, u32 site, u32 step, u32 bh, u32 q16, u32 k16, u32 a, u32 b)
{
    return philox(seed, STREAM_DROPOUT, q16 << 18 | k16 << 4 | a << 2 | b, bh, site, step);
}
/* Compares four bytes with the threshold at once: the sign bit of each result byte is set where
 * byte >= threshold, that is, where the element is kept. Let t be the threshold, less 128 if it is
 * above 128. (byte | 128) - t has its sign set where the lower seven bits are >= t, and no byte
 * borrows. With a threshold up to 128 the element is kept if this sign or the byte's own is set,
 * above 128 if both are. In both cases the result is the majority of these two signs and `carry`,
 * which is all ones for thresholds up to 128 and zero for thresholds above. `less` is t in each
 * byte. */
DEVICE u32 dropout_kept(u32 bytes, u32 less, u32 carry)
{
    u32 low = (bytes | 0x80808080u) - less;
    return (bytes & low) | (carry & (bytes | low));
}
DEVICE int byte_at(u32 word, int i)
{
    return (int)(word >> (8 * i) & 255);
}
/* Word i of a call. It is selected, because a dynamic index would put the words into local memory.
 */
DEVICE u32 word_at(const words &d, int i)
{
    u32 low = i & 1 ? d.w[1] : d.w[0], high = i & 1 ? d.w[3] : d.w[2];
    return i & 2 ? high : low;
}
/* True if element (q,k) of the attention matrix of head bh is kept. Makes its own Philox call. */
DEVICE bool keeps_score(u32 seed, u32 site, u32 step, u32 bh, u32 q, u32 k, int threshold)
{
    words r = dropout_attention(seed, site, step, bh, q / 16, k / 16, q % 8 / 2, k % 8 / 2);
    u32 low = q % 2 ? r.w[1] : r.w[0], high = q % 2 ? r.w[3] : r.w[2];
    return byte_at(q % 16 < 8 ? low : high, (int)(k % 16 / 8 * 2 + k % 2)) >= threshold;
}
DEVICE float dropout_scale(int threshold)
{
    return 256.0f / (float)(256 - threshold);
}
