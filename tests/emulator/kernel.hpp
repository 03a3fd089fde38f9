/* kernel.hpp - precedes every kernel source: CUDA's built-ins, for g++. The C library is declared
 * by hand, because its headers would take most of the compile time. A source that uses a missing
 * built-in does not compile. */
#pragma once
#define EMU_TEXT
#include "engine.hpp"

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
/* All shared memory is contiguous, to be poisoned. nvrtc.cpp makes `extern` arrays names of the
 * dynamic part. */
#define __shared__   static __attribute__((section("emu_shared")))

struct uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}
static inline float2 make_float2(float x, float y)
{
    return {x, y};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

extern "C" {
float expf(float) noexcept;
float exp2f(float) noexcept;
float logf(float) noexcept;
float log1pf(float) noexcept;
float log2f(float) noexcept;
float sqrtf(float) noexcept;
float tanhf(float) noexcept;
float erff(float) noexcept;
float expm1f(float) noexcept;
float fabsf(float) noexcept;
float fmaxf(float, float) noexcept;
float fminf(float, float) noexcept;
float fmaf(float, float, float) noexcept;
double sqrt(double) noexcept;
double exp(double) noexcept;
double pow(double, double) noexcept;
double cos(double) noexcept;
double sin(double) noexcept;
void *memcpy(void *, const void *, size_t) noexcept;
}
static inline int min(int a, int b)
{
    return a < b ? a : b;
}
static inline int max(int a, int b)
{
    return a > b ? a : b;
}
static inline unsigned min(unsigned a, unsigned b)
{
    return a < b ? a : b;
}
static inline unsigned max(unsigned a, unsigned b)
{
    return a > b ? a : b;
}
static inline long long min(long long a, long long b)
{
    return a < b ? a : b;
}
static inline long long max(long long a, long long b)
{
    return a > b ? a : b;
}

static emu_index threadIdx, blockIdx, blockDim, gridDim;
alignas(1024) static unsigned char emu_dynamic[EMU_DYNAMIC + EMU_GUARD];
__attribute__((used))
__shared__ unsigned char emu_some_shared[16]; /* so that every module has some */
extern "C" unsigned char __start_emu_shared[], __stop_emu_shared[];
extern "C" {
__attribute__((visibility("default")))
emu_module emu_this = {nullptr,  &threadIdx,  &blockIdx,          &blockDim,
                       &gridDim, emu_dynamic, __start_emu_shared, __stop_emu_shared};
}

/* --- collective operations of a block and a warp --- */

static inline void __syncthreads()
{
    emu_this.engine->barrier();
}
static inline int emu_lane()
{
    return (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % EMU_WARP);
}
template <typename T>
static inline const emu_slot *emu_meet(unsigned mask, const T &a, void (*finish)(emu_slot *) = 0)
{
    static_assert(sizeof(T) <= EMU_SLOT, "too large for a slot");
    return emu_this.engine->meet(mask, &a, sizeof a, finish);
}
template <typename T> static inline T emu_of(const emu_slot *slots, int lane)
{
    T a;
    memcpy(&a, slots[lane].bytes, sizeof a);
    return a;
}
template <typename T> static inline T emu_from(unsigned mask, T a, int lane)
{
    return emu_of<T>(emu_meet(mask, a), lane & 31);
}
template <typename T> static inline T __shfl_sync(unsigned mask, T a, int lane, int width = 32)
{
    return emu_from(mask, a, (emu_lane() & ~(width - 1)) | (lane & (width - 1)));
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T a, int with)
{
    return emu_from(mask, a, emu_lane() ^ with);
}
template <typename T>
static inline T __shfl_up_sync(unsigned mask, T a, unsigned by, int width = 32)
{
    int lane = emu_lane();
    return emu_from(mask, a, (lane & (width - 1)) >= (int)by ? lane - (int)by : lane);
}
template <typename T>
static inline T __shfl_down_sync(unsigned mask, T a, unsigned by, int width = 32)
{
    int lane = emu_lane();
    return emu_from(mask, a, (lane & (width - 1)) + (int)by < width ? lane + (int)by : lane);
}
static inline unsigned __match_any_sync(unsigned mask, int key)
{
    const emu_slot *s = emu_meet(mask, key);
    unsigned same = 0;
    for (int i = 0; i < EMU_WARP; i++)
        if (mask >> i & 1 && emu_of<int>(s, i) == key) same |= 1u << i;
    return same;
}
static inline unsigned __ballot_sync(unsigned mask, int yes)
{
    const emu_slot *s = emu_meet(mask, (int)(yes != 0));
    unsigned all = 0;
    for (int i = 0; i < EMU_WARP; i++)
        if (mask >> i & 1 && emu_of<int>(s, i)) all |= 1u << i;
    return all;
}
static inline unsigned __reduce_max_sync(unsigned mask, unsigned a)
{
    const emu_slot *s = emu_meet(mask, a);
    unsigned most = 0;
    for (int i = 0; i < EMU_WARP; i++)
        if (mask >> i & 1 && emu_of<unsigned>(s, i) > most) most = emu_of<unsigned>(s, i);
    return most;
}
static inline int __any_sync(unsigned mask, int yes)
{
    return __ballot_sync(mask, yes) != 0;
}
static inline int __all_sync(unsigned mask, int yes)
{
    return __ballot_sync(mask, !yes) == 0;
}
static inline void __syncwarp(unsigned mask = ~0u)
{
    emu_meet(mask, 0);
}

/* --- operations of one thread --- */

static inline float __uint_as_float(unsigned a)
{
    return __builtin_bit_cast(float, a);
}
static inline float __int_as_float(int a)
{
    return __builtin_bit_cast(float, a);
}
static inline unsigned __float_as_uint(float a)
{
    return __builtin_bit_cast(unsigned, a);
}
static inline int __float_as_int(float a)
{
    return __builtin_bit_cast(int, a);
}
static inline float __fdividef(float a, float b)
{
    return fabsf(b) > 0x1p126f && fabsf(b) < __builtin_inff() ? a * 0.0f : a / b;
}
static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fsub_rn(float a, float b)
{
    return a - b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float rsqrtf(float a)
{
    return 1 / sqrtf(a);
}
static inline int __popc(unsigned a)
{
    return __builtin_popcount(a);
}
static inline int __ffs(int a)
{
    return __builtin_ffs(a);
}
static inline int __clz(int a)
{
    return a ? __builtin_clz((unsigned)a) : 32;
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which)
{
    unsigned long long all = (unsigned long long)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        unsigned k = which >> (4 * i) & 15, byte = (unsigned)(all >> (8 * (k & 7))) & 255;
        if (k & 8) byte = byte & 128 ? 255 : 0;
        r |= byte << (8 * i);
    }
    return r;
}
/* Clocks of the emulated 1.5 GHz, by the host's time; two readings differ. */
extern "C" long clock() noexcept;
static inline long long clock64()
{
    static long long readings;
    return clock() * 1500ll + ++readings;
}
template <typename T> static inline T __ldg(const T *p)
{
    return *p;
}
template <typename T> static inline T __ldcs(const T *p)
{
    return *p;
}
template <typename T> static inline T __ldcg(const T *p)
{
    return *p;
}
template <typename T> static inline void __stcs(T *p, T a)
{
    *p = a;
}
template <typename T> static inline void __stcg(T *p, T a)
{
    *p = a;
}
static inline void __threadfence() {}
template <typename T> static inline T atomicAdd(T *p, T a)
{
    T old = *p;
    *p += a;
    return old;
}
template <typename T> static inline T atomicMax(T *p, T a)
{
    T old = *p;
    if (a > old) *p = a;
    return old;
}
static inline unsigned atomicOr(unsigned *p, unsigned a)
{
    unsigned old = *p;
    *p |= a;
    return old;
}
static inline unsigned atomicInc(unsigned *p, unsigned most)
{
    unsigned old = *p;
    *p = old >= most ? 0 : old + 1;
    return old;
}

/* Addresses of shared memory have 32 bits. */
static inline size_t __cvta_generic_to_shared(const void *p)
{
    return (size_t)((const char *)p - (const char *)emu_dynamic + (1ll << 30));
}
static inline void *emu_shared(unsigned at)
{
    return (char *)emu_dynamic + ((long long)at - (1ll << 30));
}

/* --- entries: nvrtc.cpp adds one line for each kernel at the end of a source --- */

template <int... I> struct emu_numbers {
};
template <int N, int... I> struct emu_count : emu_count<N - 1, N - 1, I...> {
};
template <int... I> struct emu_count<0, I...> {
    typedef emu_numbers<I...> type;
};
template <typename... A, int... I>
static inline void emu_call(void (*f)(A...), void **p, emu_numbers<I...>)
{
    f(*(A *)p[I]...);
}
template <auto F> struct emu_kernel;
template <typename... A, void (*F)(A...)> struct emu_kernel<F> {
    static_assert(sizeof...(A) <= EMU_PARAMETERS, "too many parameters");
    static void run(void **p) { emu_call(F, p, typename emu_count<(int)sizeof...(A)>::type()); }
    static constexpr emu_entry entry = {run, (int)sizeof...(A), {sizeof(A)...}};
};

#include "ptx.hpp"
