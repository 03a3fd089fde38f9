/* ptx.hpp - C++ versions of the functions of kernel sources that consist of PTX: those of mma.cuh
 * and of device.cuh, under the same names. nvrtc.cpp removes functions that contain `asm` from a
 * source; if one is missing here, the source does not compile. Lane = 4g + q as in mma.cuh.
 *
 * An instruction of the whole warp reads shared memory when each lane arrives. Without a barrier it
 * may miss what another lane writes, as on a GPU. The last lane computes for all. */
#pragma once

template <typename T> static inline void emu_put(emu_slot *slots, int lane, const T &a)
{
    memcpy(slots[lane].bytes, &a, sizeof a);
}

/* Replaced although they have no PTX, because they are most of the time of a simple kernel: one
 * collective operation in place of five, which adds in the same order. */
template <float join(float, float)> static inline float emu_warp_all(float a)
{
    const emu_slot *s = emu_meet(~0u, a, [](emu_slot *of) {
        float all[EMU_WARP];
        for (int i = 0; i < EMU_WARP; i++) all[i] = emu_of<float>(of, i);
        for (int d = EMU_WARP / 2; d; d /= 2)
            for (int i = 0; i < d; i++) all[i] = join(all[i], all[i + d]);
        emu_put(of, 0, all[0]);
    });
    return emu_of<float>(s, 0);
}
inline float warp_sum(float a) /* not static: only the source's own is removed */
{
    return emu_warp_all<__fadd_rn>(a);
}
inline float warp_max(float a)
{
    return emu_warp_all<fmaxf>(a);
}

/* Of the chases of lab memory. */
static inline unsigned long long global_ns()
{
    return (unsigned long long)clock64() * 2 / 3;
}

#if __CUDA_ARCH__ >= 800
static inline void ldmatrix_x4(unsigned (&r)[4], unsigned address)
{
    if (address % 16)
        emu_this.engine->broken("ldmatrix at an address that is not a multiple of 16");
    const emu_slot *s = emu_meet(~0u, *(const uint4 *)emu_shared(address));
    int g = emu_lane() / 4, q = emu_lane() % 4;
    for (int i = 0; i < 4; i++) memcpy(&r[i], s[8 * i + g].bytes + 4 * q, 4);
}
static inline void ldmatrix_x4_trans(unsigned (&r)[4], unsigned address)
{
    if (address % 16)
        emu_this.engine->broken("ldmatrix at an address that is not a multiple of 16");
    const emu_slot *s = emu_meet(~0u, *(const uint4 *)emu_shared(address));
    int g = emu_lane() / 4, q = emu_lane() % 4;
    for (int i = 0; i < 4; i++) {
        unsigned short low, high;
        memcpy(&low, s[8 * i + 2 * q].bytes + 2 * g, 2);
        memcpy(&high, s[8 * i + 2 * q + 1].bytes + 2 * g, 2);
        r[i] = low | (unsigned)high << 16;
    }
}

/* A lane's elements of the three matrices: two bf16 or one TF32 in each word of a and b. */
struct emu_fragments {
    unsigned a[4], b[2];
    float d[4];
};
static inline float emu_half(unsigned two, int high)
{
    return __uint_as_float(high ? two & 0xffff0000u : two << 16);
}
/* The tensor cores read 10 bits of mantissa. */
static inline float emu_tf32(unsigned a)
{
    return __uint_as_float(a & 0xffffe000u);
}

/* d (16 x 8) += a (16 x K) b (K x 8): TWO: K = 16 in bf16; otherwise K = 8 in TF32. */
template <bool TWO> static inline void emu_product(emu_slot *slots)
{
    typedef float row __attribute__((vector_size(32))); /* of b and d */
    enum { K = TWO ? 16 : 8, HALF = K / 2 };
    float a[16][K], b[K][8], d[16][8];
    for (int lane = 0; lane < EMU_WARP; lane++) {
        const int g = lane / 4, q = lane % 4;
        const emu_fragments f = emu_of<emu_fragments>(slots, lane);
        for (int i = 0; i < 4; i++) {
            for (int h = 0; h < 1 + TWO; h++)
                a[g + i % 2 * 8][i / 2 * HALF + (1 + TWO) * q + h] =
                    TWO ? emu_half(f.a[i], h) : emu_tf32(f.a[i]);
            d[g + i / 2 * 8][2 * q + i % 2] = f.d[i];
        }
        for (int i = 0; i < 2; i++)
            for (int h = 0; h < 1 + TWO; h++)
                b[i * HALF + (1 + TWO) * q + h][g] = TWO ? emu_half(f.b[i], h) : emu_tf32(f.b[i]);
    }
    for (int m = 0; m < 16; m++) {
        row sum, of_b;
        memcpy(&sum, d[m], sizeof sum);
        for (int k = 0; k < K; k++) {
            memcpy(&of_b, b[k], sizeof of_b);
            sum += a[m][k] * of_b;
        }
        memcpy(d[m], &sum, sizeof sum);
    }
    for (int lane = 0; lane < EMU_WARP; lane++) {
        const int g = lane / 4, q = lane % 4;
        emu_put(slots, lane,
                float4{d[g][2 * q], d[g][2 * q + 1], d[g + 8][2 * q], d[g + 8][2 * q + 1]});
    }
}
template <bool TWO>
static inline void emu_mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    const emu_fragments mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}, {d[0], d[1], d[2], d[3]}};
    memcpy(d, emu_meet(~0u, mine, emu_product<TWO>)[emu_lane()].bytes, sizeof d);
}
static inline void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    emu_mma<true>(d, a, b0, b1);
}
static inline void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    emu_mma<false>(d, a, b0, b1);
}
static inline unsigned cvt_rna_tf32(float a)
{
    unsigned bits = __float_as_uint(a);
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
}
static inline unsigned cvt_tf32(float a) /* ties as before sm_90 */
{
    return cvt_rna_tf32(a);
}

static inline void cp_async_16(unsigned to, const void *from, int bytes)
{
    emu_this.engine->copy(emu_shared(to), from, bytes, 16);
}
static inline void cp_async_4(unsigned to, const void *from, int bytes)
{
    emu_this.engine->copy(emu_shared(to), from, bytes, 4);
}
static inline void cp_async_commit()
{
    emu_this.engine->copies_commit();
}
template <int N> static inline void cp_async_wait()
{
    emu_this.engine->copies_wait(N);
}

static inline unsigned emu_bf16(float a)
{
    unsigned bits = __float_as_uint(a);
    return a != a ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}
static inline unsigned pack_bf16(float low, float high)
{
    return emu_bf16(low) | emu_bf16(high) << 16;
}
static inline unsigned pack_bf16_positive(float low, float high)
{
    return pack_bf16(low < 0 ? 0 : low, high < 0 ? 0 : high);
}
#endif

#if __CUDA_ARCH__ >= 890
/* An 8-bit float, by its number of mantissa bits, smallest normal exponent and largest code. */
static inline unsigned emu_code(float a, int mantissa, int least, unsigned largest)
{
    if (a != a) return 0x7f;
    unsigned sign = __float_as_uint(a) >> 24 & 0x80;
    float size = fabsf(a);
    if (size > 65536) return sign | largest;
    int e = (int)(__float_as_uint(size) >> 23) - 127;
    if (e < least) e = least;
    float digits = size * __uint_as_float((unsigned)(127 + mantissa - e) << 23);
    unsigned code = (unsigned)((e - least) << mantissa) + (unsigned)__builtin_rintf(digits);
    return sign | (code < largest ? code : largest);
}
static inline unsigned codes_e4m3(float low, float high)
{
    return emu_code(low, 3, -6, 0x7e) | emu_code(high, 3, -6, 0x7e) << 8;
}
static inline unsigned codes_e5m2(float low, float high)
{
    return emu_code(low, 2, -14, 0x7b) | emu_code(high, 2, -14, 0x7b) << 8;
}
#endif

#if __CUDA_ARCH__ >= 900
#include "hopper.hpp"

static inline void red_add_x4(float *p, const float (&a)[4])
{
    if ((size_t)p % 16)
        emu_this.engine->broken("red.v4 at an address that is not a multiple of 16");
    for (int i = 0; i < 4; i++) p[i] += a[i];
}
#endif

static inline void red_add(float *p, float a)
{
    *p += a;
}
static inline void store_16(void *p, unsigned a, unsigned b, unsigned c, unsigned d)
{
    const unsigned all[] = {a, b, c, d};
    if ((size_t)p % 16)
        emu_this.engine->broken("a store of 16 bytes at an address that is not a multiple of 16");
    memcpy(p, all, sizeof all);
}
static inline void load_shared_16(unsigned (&r)[4], unsigned address)
{
    if (address % 16)
        emu_this.engine->broken("a load of 16 bytes at an address that is not a multiple of 16");
    memcpy(r, emu_shared(address), sizeof r);
}
/* There are no caches here. */
static inline void prefetch_l2(const void *p)
{
    (void)p;
}
static inline float ex2_approx(float a) /* .ftz */
{
    float r = exp2f(a);
    return r < 0x1p-126f ? 0 : r;
}
static inline float lg2_approx(float a)
{
    return log2f(a);
}
static inline float rcp_approx(float a) /* .ftz */
{
    float r = fabsf(a) < 0x1p-126f ? 1 / (0 * a) : 1 / a;
    return fabsf(r) < 0x1p-126f ? 0 : r;
}
static inline float tanh_approx(float a)
{
    return tanhf(a);
}
static inline unsigned prmt(unsigned a, unsigned b, unsigned which)
{
    return __byte_perm(a, b, which);
}
static inline int opaque(int a)
{
    return a;
}
