/* hopper.cuh - PTX that compute capability 9.0 adds to mma.cuh, by its PTX names: wgmma, tensor
 * maps, barriers in shared memory, and fences. For sources compiled for sm_90a only.
 *
 * A warpgroup is four consecutive warps; the number of the first one is a multiple of four. t is a
 * thread's number in its warpgroup; w = t / 32, g = t % 32 / 4, q = t % 4. Addresses of shared
 * memory have 32 bits (shared_address). PTX ISA 8.x, "Asynchronous Warpgroup Level Matrix
 * Instructions" and "Tensors". */
#pragma once
#include "mma.cuh"

/* --- wgmma ---
 *
 * d (64 x N, float) += a (64 x 16, bf16) b (16 x N, bf16). Element i of d in a thread:
 *     row 16w + g + 8 (i / 2 % 2), column 8 (i / 4) + 2q + i % 2
 * If a is in registers, a[r] holds two bf16, the first in the lower half:
 *     row 16w + g + 8 (r % 2), columns 2q + 8 (r / 2) and the next
 * Columns 16j ... of d, packed, are the next a: a[r] = pack_bf16(d[8j + 2r], d[8j + 2r + 1]).
 *
 * In shared memory a matrix is a sequence of panels of 64, 32 or 16 columns, with rows of 128, 64
 * or 32 bytes. Chunks of 16 bytes are XORed with the row, as a tensor map with that swizzle and a
 * box of that many columns writes them; panel_chunk computes the offset. A panel starts at a
 * multiple of 1024, 512 or 256 bytes and has a multiple of 8 rows. An operand is K-major (a (m,k),
 * b (n,k)) or transposed (a (k,m), b (k,n); TA, TB = 1):
 *
 *     columns of a panel               64                  32          16
 *     K-major: LBO 1, SBO              1024                512         256
 *              next 16 of k            +32 in the panel, then the next panel
 *     else:    LBO panel to panel      rows * 128          rows * 64   rows * 32
 *              SBO                     1024                512         256
 *              next 16 of k            +2048               +1024       +512
 *
 * Order: wgmma_fence; wgmma; wgmma_commit; wgmma_wait. Until the wait, d must not be accessed and
 * the operands in shared memory must not change. All 128 threads call these, on a uniform path. */
enum { SWIZZLE_128B = 1, SWIZZLE_64B = 2, SWIZZLE_32B = 3 };
/* LBO and SBO are in bytes. To advance by x bytes add x / 16. */
template <int SWIZZLE = SWIZZLE_128B>
DEVICE u64 wgmma_descriptor(u32 shared, int lbo_bytes, int sbo_bytes)
{
    return (u64)((shared & 0x3ffff) >> 4) | (u64)(lbo_bytes >> 4 & 0x3fff) << 16 |
           (u64)(sbo_bytes >> 4 & 0x3fff) << 32 | (u64)SWIZZLE << 62;
}
/* Byte offset of chunk c (16 bytes) of a row from the panel's start. */
template <int SWIZZLE = SWIZZLE_128B> DEVICE u32 panel_chunk(int row, int c)
{
    constexpr int CHUNKS = 16 >> SWIZZLE; /* 8, 4 or 2 per row */
    return (u32)(row * CHUNKS + (c ^ (row / (8 / CHUNKS) & (CHUNKS - 1)))) * 16;
}

/* Required before the first wgmma, and after other instructions accessed the registers of a wgmma.
 */
DEVICE void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
DEVICE void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/* Waits until at most N groups are in flight. */
template <int N> DEVICE void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
/* A barrier for the compiler: reads and writes of d stay on their side of the barrier. The compiler
 * does not know that wgmma is asynchronous and could read d before the wait. */
template <int N> DEVICE void wgmma_hold(float (&d)[N])
{
    UNROLL for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}

/* Marks the contents of d as dead, before a first wgmma that overwrites it. The compiler assumes
 * that every wgmma adds to d and would keep it alive through a loop. */
template <int N> DEVICE void wgmma_forget(float (&d)[N])
{
    UNROLL for (int i = 0; i < N; i++) asm volatile("" : "=f"(d[i]));
}

/* Forces `a` to be computed before the code that follows: while wgmma runs, not after the wait. */
template <int N> DEVICE void computed(u32 (&a)[N])
{
    UNROLL for (int i = 0; i < N; i++) asm volatile("" : "+r"(a[i])::"memory");
}

/* Operands of asm, by the number of registers of d. */
#define WGMMA_D8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define WGMMA_D16 WGMMA_D8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define WGMMA_D32 WGMMA_D16 \
    ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WGMMA_D48 WGMMA_D32 \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define WGMMA_D64 WGMMA_D48 \
    ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WGMMA_D96 WGMMA_D64 \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
    ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define WGMMA_D128                                                                                 \
    WGMMA_D96                                                                                      \
    ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
    ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, " \
    "%127"
#define WGMMA_F8(i)                                                                             \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define WGMMA_F16_AT(i) WGMMA_F8(i), WGMMA_F8(i + 8)
#define WGMMA_F32_AT(i) WGMMA_F16_AT(i), WGMMA_F16_AT(i + 16)
#define WGMMA_F8_ALL    WGMMA_F8(0)
#define WGMMA_F16_ALL   WGMMA_F16_AT(0)
#define WGMMA_F32_ALL   WGMMA_F32_AT(0)
#define WGMMA_F48_ALL   WGMMA_F32_AT(0), WGMMA_F16_AT(32)
#define WGMMA_F64_ALL   WGMMA_F32_AT(0), WGMMA_F32_AT(32)
#define WGMMA_F96_ALL   WGMMA_F64_ALL, WGMMA_F32_AT(64)
#define WGMMA_F128_ALL  WGMMA_F96_ALL, WGMMA_F32_AT(96)
/* o0 ... are the numbers of the operands after d. `accumulate` is turned into a predicate. */
#define WGMMA_SS(n, half, o0, o1, o2, o3, o4)                                               \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #o2 ", 0;\n"                          \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" WGMMA_D##half \
                 "}, %" #o0 ", %" #o1 ", p, 1, 1, %" #o3 ", %" #o4 ";\n}"                   \
                 : WGMMA_F##half##_ALL                                                      \
                 : "l"(a), "l"(b), "r"((int)accumulate), "n"((int)TA), "n"((int)TB)         \
                 : "memory")
#define WGMMA_RS(n, half, o0, o1, o2, o3, o4, o5, o6)                                           \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #o5 ", 0;\n"                              \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" WGMMA_D##half     \
                 "}, {%" #o0 ", %" #o1 ", %" #o2 ", %" #o3 "}, %" #o4 ", p, 1, 1, %" #o6 ";\n}" \
                 : WGMMA_F##half##_ALL                                                          \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)accumulate),    \
                   "n"((int)TB)                                                                 \
                 : "memory")

#define WGMMA_SS_TF32(n, half, o0, o1, o2)                                                   \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #o2 ", 0;\n"                           \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k8.f32.tf32.tf32 {" WGMMA_D##half  \
                 "}, %" #o0 ", %" #o1 ", p, 1, 1;\n}"                                       \
                 : WGMMA_F##half##_ALL                                                      \
                 : "l"(a), "l"(b), "r"((int)accumulate)                                     \
                 : "memory")

/* a and b are in shared memory. Without `accumulate` d is overwritten. */
template <int N, bool TA, bool TB>
DEVICE void wgmma_ss(float (&d)[N / 2], u64 a, u64 b, bool accumulate)
{
    if constexpr (N == 16) WGMMA_SS(16, 8, 8, 9, 10, 11, 12);
    else if constexpr (N == 32) WGMMA_SS(32, 16, 16, 17, 18, 19, 20);
    else if constexpr (N == 64) WGMMA_SS(64, 32, 32, 33, 34, 35, 36);
    else if constexpr (N == 96) WGMMA_SS(96, 48, 48, 49, 50, 51, 52);
    else if constexpr (N == 128) WGMMA_SS(128, 64, 64, 65, 66, 67, 68);
    else if constexpr (N == 192) WGMMA_SS(192, 96, 96, 97, 98, 99, 100);
    else if constexpr (N == 256) WGMMA_SS(256, 128, 128, 129, 130, 131, 132);
    else static_assert(N == 0, "no wgmma of this width");
}
/* Like wgmma_ss, for floats: a (64 x 8) and b (8 x N) are both K-major, in panels of 32 columns,
 * 128 bytes; the next 8 of k are 32 bytes further. wgmma truncates the floats to the 10 mantissa
 * bits of tf32; a tensor map of type tf32 rounds them while it copies. */
template <int N> DEVICE void wgmma_ss_tf32(float (&d)[N / 2], u64 a, u64 b, bool accumulate)
{
    if constexpr (N == 128) WGMMA_SS_TF32(128, 64, 64, 65, 66);
    else if constexpr (N == 192) WGMMA_SS_TF32(192, 96, 96, 97, 98);
    else if constexpr (N == 256) WGMMA_SS_TF32(256, 128, 128, 129, 130);
    else static_assert(N == 0, "no wgmma of this width");
}
/* a is in registers, b in shared memory. */
template <int N, bool TB>
DEVICE void wgmma_rs(float (&d)[N / 2], const u32 (&a)[4], u64 b, bool accumulate)
{
    if constexpr (N == 16) WGMMA_RS(16, 8, 8, 9, 10, 11, 12, 13, 14);
    else if constexpr (N == 32) WGMMA_RS(32, 16, 16, 17, 18, 19, 20, 21, 22);
    else if constexpr (N == 64) WGMMA_RS(64, 32, 32, 33, 34, 35, 36, 37, 38);
    else if constexpr (N == 96) WGMMA_RS(96, 48, 48, 49, 50, 51, 52, 53, 54);
    else if constexpr (N == 128) WGMMA_RS(128, 64, 64, 65, 66, 67, 68, 69, 70);
    else if constexpr (N == 192) WGMMA_RS(192, 96, 96, 97, 98, 99, 100, 101, 102);
    else if constexpr (N == 256) WGMMA_RS(256, 128, 128, 129, 130, 131, 132, 133, 134);
    else static_assert(N == 0, "no wgmma of this width");
}

/* --- barriers in shared memory: 8 bytes each, at a multiple of 8 ---
 *
 * A phase ends when the number of threads given at initialization have arrived and all announced
 * bytes have been copied; then the next phase begins. Phases alternate 0, 1, 0, 1 ... (parity).
 * Waiting for the parity of the previous phase (1 for a new barrier) returns at once. Use i of a
 * ring of S stages is phase i / S % 2 of stage i % S. */
DEVICE void mbarrier_init(u32 barrier, int threads)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(threads) : "memory");
}
/* Makes initialized barriers visible to copies; __syncthreads makes them visible to threads. */
DEVICE void fence_barrier_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/* Arrives, and announces the bytes of copies; parts of boxes outside the tensor count, too. */
DEVICE void mbarrier_expect(u32 barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}
DEVICE void mbarrier_arrive(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/* Waits until the phase of that parity has ended. */
DEVICE void mbarrier_wait(u32 barrier, int parity)
{
    asm volatile("{\n.reg .pred p;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra again;\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}
/* Makes this thread's writes to shared memory visible to wgmma and bulk copies, once a thread
 * barrier is passed. Writes of other threads before a barrier that this thread has passed become
 * visible to the wgmma and copies that it issues itself: PTX ISA 8.x, "Memory Consistency Model",
 * "Causality order", where a proxy fence counts anywhere on the path. The fence takes longer while
 * wgmma are in flight. */
DEVICE void fence_async()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* --- copies by tensor maps: a box of a 5-dimensional tensor, innermost first, at c0 ... c4 ---
 *
 * Shared memory holds the box without gaps, each row swizzled as the map specifies. Its address is
 * a multiple of 1024, 512, 256 or (unswizzled) 128. Reads outside the tensor return zeros; writes
 * outside are dropped. One thread calls these. */
struct __align__(64) tensor_map {
    u64 words[16];
};
/* Arriving bytes are counted at `barrier`. */
DEVICE void tma_load(u32 to, const tensor_map *map, u32 barrier, int c0, int c1, int c2, int c3,
                     int c4)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, "
                 "%5, %6, %7}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
                 : "memory");
}
DEVICE void tma_store(const tensor_map *map, u32 from, int c0, int c1, int c2, int c3, int c4)
{
    asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5, "
                 "%6}], [%1];" ::"l"(map),
                 "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
                 : "memory");
}
/* Closes a group of this thread's stores, bulk_stores and bulk_adds. */
DEVICE void tma_store_commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/* Waits until all but N groups have read their shared memory, which may then be overwritten. */
template <int N> DEVICE void tma_store_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
/* Waits until the writes of all but N groups are visible. */
template <int N> DEVICE void tma_store_wait()
{
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}
DEVICE void tma_prefetch_map(const tensor_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
/* Flat copies; addresses and sizes are multiples of 16 bytes. */
DEVICE void bulk_load(u32 to, const void *from, int bytes, u32 barrier)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(to),
        "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
        : "memory");
}
DEVICE void bulk_store(void *to, u32 from, int bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                     __cvta_generic_to_global(to)),
                 "r"(from), "r"(bytes)
                 : "memory");
}
/* Adds floats of shared memory to those at `to`; the order between blocks is undefined. */
DEVICE void bulk_add_f32(float *to, u32 from, int bytes)
{
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(
                     __cvta_generic_to_global(to)),
                 "r"(from), "r"(bytes)
                 : "memory");
}

/* --- the threads of a block --- */
/* Barrier `id` (1 ... 15; 0 is __syncthreads) of `threads` threads, a multiple of 32. Threads that
 * sync wait for all; threads that arrive continue. All lanes of a warp call it together. */
DEVICE void named_barrier_sync(int id, int threads)
{
    asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
DEVICE void named_barrier_arrive(int id, int threads)
{
    asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/* Lane 0 reads a word of shared memory for its warp, and later signals by mbarrier_arrive that it
 * may be overwritten. All lanes could read it, followed by a __syncwarp before the arrival, but
 * racecheck would then report the next write as a race with the lanes that do not arrive. */
DEVICE u32 warp_word(const volatile u32 *p)
{
    u32 a = threadIdx.x % WARP ? 0 : *p;
    return __shfl_sync(~0u, a, 0);
}

/* Sets the registers per thread, 24 ... 256 in steps of 8. An increase waits until other warpgroups
 * release registers. For whole warpgroups; launch bounds must state threads and one block. */
template <int N> DEVICE void registers_inc()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> DEVICE void registers_dec()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
/* Stores four 8x8 matrices of bf16 that are in registers as ldmatrix_x4 loads them. Lanes 8i ...
 * 8i+7 give the addresses of the 8 rows of matrix i; r[i] has row g, elements 2q, 2q+1. Two
 * adjacent 8-column tiles of d are, packed, r[0], r[1] (rows g, g+8) and r[2], r[3]. */
DEVICE void stmatrix_x4(u32 address, const u32 (&r)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}
/* Like stmatrix_x4, with each matrix transposed: r[i] has column g, elements of rows 2q, 2q+1. */
DEVICE void stmatrix_x4_trans(u32 address, const u32 (&r)[4])
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
        "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
        : "memory");
}

/* --- programmatic dependent launch (launch.h: dependent) --- */
/* The next launch may begin once all blocks have called this or ended. It is not a memory fence. */
DEVICE void dependents_start()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
/* Waits until the previous launch has ended and its writes are visible. */
DEVICE void dependents_wait()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
