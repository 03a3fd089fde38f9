/* mma.cuh - mma.sync, the copies that feed it and related PTX, by PTX names. sm_80 and newer.
 *
 * Throughout, lane = 4g + q, g = 0 ... 7, q = 0 ... 3. "Elements i, i+1" of a u32 are two bf16, the
 * first in the lower half. Addresses of shared memory have 32 bits (shared_address). */
#pragma once
#include "device.cuh"

DEVICE u32 shared_address(const void *p)
{
    return (u32)__cvta_generic_to_shared(p);
}

/* Loads four 8x8 matrices of bf16. Lanes 8i ... 8i+7 give the addresses of the 8 rows (16 bytes
 * each) of matrix i. r[i] = row g, elements 2q, 2q+1 of matrix i. */
DEVICE void ldmatrix_x4(u32 (&r)[4], u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}
/* Like ldmatrix_x4, with each matrix transposed: r[i] = column g, elements of rows 2q, 2q+1. */
DEVICE void ldmatrix_x4_trans(u32 (&r)[4], u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

/* d (16x8, float) += a (16x16, bf16) b (16x8, bf16).
 *     d[0], d[1] = row g, columns 2q, 2q+1; d[2], d[3] = row g+8
 *     a[0] = row g, columns 2q, 2q+1; a[1] = row g+8; a[2], a[3] = same rows, columns 2q+8, 2q+9
 *     b0 = column g, rows 2q, 2q+1; b1 = column g, rows 2q+8, 2q+9
 * Two adjacent tiles d of one result, packed, are therefore one a of the next mma: a[0] = tile 0's
 * d[0], d[1]; a[1] = its d[2], d[3]; a[2], a[3] = tile 1's. ldmatrix_x4 loads a (matrices: rows 0-7
 * and 8-15 of columns 0-7, then of columns 8-15). For the b of two tiles it loads rows n of a
 * matrix (n,k) untransposed, and rows k of a matrix (k,n) transposed. */
DEVICE void mma_m16n8k16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* d (16x8, float) += a (16x8, tf32) b (8x8, tf32); d as in mma_m16n8k16.
 *     a[0] = row g, column q; a[1] = row g+8, column q; a[2], a[3] = the same rows, column q+4
 *     b0 = column g, row q; b1 = column g, row q+4 */
DEVICE void mma_m16n8k8_tf32(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/* Rounds to the 10 mantissa bits of tf32; without this, mma truncates. */
DEVICE u32 cvt_rna_tf32(float a)
{
    u32 r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(a));
    return r;
}

/* Rounds to tf32, on sm_90 by the instruction that rounds ties to even; older GPUs round ties away
 * from zero. */
DEVICE u32 cvt_tf32(float a)
{
    u32 r;
#if __CUDA_ARCH__ >= 900
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(r) : "f"(a));
#else
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(a));
#endif
    return r;
}

/* Writes 16 bytes of shared memory, without registers: a copy of global memory if `bytes` is 16,
 * zeros if it is 0. With 0 nothing is read, but the address must be valid. */
DEVICE void cp_async_16(u32 to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes)
                 : "memory");
}
/* Like cp_async_16, for 4 bytes at any multiple of 4; `bytes` is 0 or 4. */
DEVICE void cp_async_4(u32 to, const void *from, int bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes)
                 : "memory");
}
DEVICE void cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
/* Waits until at most N of this thread's groups are in flight. The copied data are visible to other
 * threads only after __syncthreads. */
template <int N> DEVICE void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* Stores 16 bytes in one access; the compiler may split a plain store of a struct into four. */
DEVICE void store_16(void *p, u32 a, u32 b, u32 c, u32 d)
{
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}
/* Reads 16 bytes of shared memory at this point of the code; the compiler does not move the read or
 * keep its result in registers for later reads. */
DEVICE void load_shared_16(u32 (&r)[4], u32 address)
{
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

DEVICE void prefetch_l2(const void *p)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(p)));
}

/* pack_bf16 with negative numbers replaced by zero; NaN stays. */
DEVICE u32 pack_bf16_positive(float low, float high)
{
    u32 r;
    asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

/* 2^a, to 2 units in the last place; -inf gives 0, NaN stays. */
DEVICE float ex2_approx(float a)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
    return r;
}
DEVICE float lg2_approx(float a)
{
    float r;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
    return r;
}
/* 1/a to one unit in the last place; 0 from 2^126 on, infinite for subnormal a. */
DEVICE float rcp_approx(float a)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
    return r;
}
/* Accurate to 11 bits; NaN stays. */
DEVICE float tanh_approx(float a)
{
    float r;
    asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(a));
    return r;
}

/* Picks four bytes from the eight of a (0 ... 3) and b (4 ... 7). The lowest nibble of `which`
 * picks the lowest byte; 8 + i replicates the sign of byte i. */
DEVICE u32 prmt(u32 a, u32 b, u32 which)
{
    u32 r;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(which));
    return r;
}
/* Zeroes each of two bf16 whose byte of `kept` has no sign bit. The bytes are 0 and 1 or, if
 * `upper`, 2 and 3. */
DEVICE void drop_pair(u32 &two, u32 kept, bool upper)
{
    two &= prmt(kept, 0, upper ? 0xbbaa : 0x9988);
}

/* Byte offset of chunk c (16 bytes) of a row in a tile whose rows have CHUNKS chunks. The XOR with
 * the row spreads the same chunk of 8 adjacent rows over all 32 banks, for every number of chunks,
 * so ldmatrix and 16-byte stores have no conflicts.
 *
 * The row's part depends on row % 8 only, so with row = 8i + r
 *     swizzle<N>(row, c ^ d) = 128iN + (swizzle<N>(r, c) ^ 16d), d < swizzle_width(N) */
DEVICE constexpr int swizzle_width(int chunks) /* largest power-of-two divisor, at most 8 */
{
    return chunks % 8 == 0 ? 8 : chunks % 4 == 0 ? 4 : chunks % 2 == 0 ? 2 : 1;
}
template <int CHUNKS> DEVICE u32 swizzle(int row, int chunk)
{
    constexpr int W = swizzle_width(CHUNKS);
    return (u32)(row * CHUNKS + (chunk ^ (row / (8 / W) & (W - 1)))) * 16;
}

/* Adds to a float in memory without returning a value; the order of threads is undefined. */
DEVICE void red_add(float *p, float a)
{
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "f"(a)
                 : "memory");
}
/* Adds four floats, 16-byte aligned; one instruction on sm_90 and newer. */
DEVICE void red_add_x4(float *p, const float (&a)[4])
{
#if __CUDA_ARCH__ >= 900
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)),
                 "f"(a[0]), "f"(a[1]), "f"(a[2]), "f"(a[3])
                 : "memory");
#else
    UNROLL for (int i = 0; i < 4; i++) red_add(p + i, a[i]);
#endif
}

/* Returns a. The compiler does not know that the result equals a, so it recomputes values from the
 * result instead of keeping them in registers. */
DEVICE int opaque(int a)
{
    asm volatile("" : "+r"(a));
    return a;
}
