/* A matmul that uses every function of hopper.cuh, for test_hopper.c: for each
 * element of a batch, c (128 x N) = bias + a (128 x K) b (K x N). One warpgroup loads and two
 * multiply, with two stages of 64 columns of k.
 *
 * COLUMNS (N), SPAN (bytes of the swizzle of a and b), A_BY_SUM, B_BY_SUM (k is the row of the
 * operand), A_REGISTERS (a goes through registers). c is written three times: unchanged,
 * transposed, and, in the order of the registers, added to the old contents. FAULT omits one
 * necessary part. */
#include "hopper.cuh"

enum {
    M = 128,
    STEP = 64,
    STAGES = 2,
    WIDE = SPAN / 2, /* columns of a panel */
    A_BYTES = M * STEP * 2,
    B_BYTES = COLUMNS * STEP * 2,
    STAGE_BYTES = A_BYTES + B_BYTES,
    OUT_WIDE = COLUMNS % 64 == 0 ? 64 : COLUMNS % 32 == 0 ? 32 : 16,
    OUT_SWIZZLE = OUT_WIDE == 64 ? SWIZZLE_128B : OUT_WIDE == 32 ? SWIZZLE_64B : SWIZZLE_32B,
    OUT_BYTES = 64 * COLUMNS * 4, /* per warpgroup */
    SWIZZLE = SPAN == 128 ? SWIZZLE_128B : SPAN == 64 ? SWIZZLE_64B : SWIZZLE_32B
};
#ifndef FAULT
#define FAULT 0
#endif

extern __shared__ u8 shared_memory[];

struct places {
    u32 stage, out, bias, full, empty, bias_full;
};
DEVICE places places_of()
{
    places p;
    p.stage = (shared_address(shared_memory) + 1023) & ~1023u;
    p.out = p.stage + STAGES * STAGE_BYTES;
    p.bias = p.out + 2 * OUT_BYTES;
    p.full = p.bias + COLUMNS * 4;
    p.empty = p.full + STAGES * 8;
    p.bias_full = p.empty + STAGES * 8;
    return p;
}

/* A tile of `rows` rows and `columns` columns at (row, column), panel after panel. */
DEVICE void load_tile(u32 to, const tensor_map *map, u32 barrier, int row, int column, int rows,
                      int columns)
{
    for (int c = 0; c < columns; c += WIDE)
        tma_load(to + c * rows * 2, map, barrier, column + c, 0, 0, row, blockIdx.x);
}

DEVICE void produce(const places &p, const tensor_map *a, const tensor_map *b, const float *bias,
                    int k)
{
    mbarrier_expect(p.bias_full, COLUMNS * 4);
    bulk_load(p.bias, bias, COLUMNS * 4, p.bias_full);
    for (int i = 0; i * STEP < k; i++) {
        int s = i % STAGES;
        u32 at = p.stage + s * STAGE_BYTES;
        mbarrier_wait(p.empty + 8 * s, i / STAGES % 2 ^ 1);
        mbarrier_expect(p.full + 8 * s, STAGE_BYTES + (FAULT == 1 ? 16 : 0));
        if (A_BY_SUM)
            load_tile(at, a, p.full + 8 * s, i * STEP, 0, STEP, M);
        else
            load_tile(at, a, p.full + 8 * s, 0, i * STEP, M, STEP);
        if (B_BY_SUM)
            load_tile(at + A_BYTES, b, p.full + 8 * s, i * STEP, 0, STEP, COLUMNS);
        else
            load_tile(at + A_BYTES, b, p.full + 8 * s, 0, i * STEP, COLUMNS, STEP);
    }
}

/* The operand of 16 columns of k, the j-th of a stage; `rows` is the tile's size in its other
 * dimension. */
DEVICE u64 descriptor(u32 at, int j, int rows, bool transposed)
{
    u32 along = transposed ? j * 16 * SPAN : j * 32 / SPAN * rows * SPAN + j * 32 % SPAN;
    return wgmma_descriptor<SWIZZLE>(at + along, transposed ? STEP * SPAN : 16, 8 * SPAN);
}

template <typename T> DEVICE T *pointer(u32 at)
{
    return (T *)(shared_memory + (at - shared_address(shared_memory)));
}
/* Two bf16 of a row of a: columns k and k + 1. */
DEVICE u32 element_pair(u32 at, int row, int k)
{
    return *pointer<u32>(at + k / WIDE * M * SPAN + panel_chunk<SWIZZLE>(row, k % WIDE / 8) +
                         k % 8 * 2);
}

DEVICE void multiply(float (&d)[COLUMNS / 2], u32 at, int group, int t)
{
    u32 a[STEP / 16][4];
    if (A_REGISTERS)
#pragma unroll
        for (int j = 0; j < STEP / 16; j++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                a[j][r] = element_pair(at, 64 * group + t / 32 * 16 + t % 32 / 4 + 8 * (r & 1),
                                       16 * j + 2 * (t % 4) + 8 * (r >> 1));
    wgmma_hold(d);
    if (FAULT != 2) wgmma_fence();
#pragma unroll
    for (int j = 0; j < STEP / 16; j++) {
        u64 b = descriptor(at + A_BYTES, j, COLUMNS, B_BY_SUM);
        if (A_REGISTERS)
            wgmma_rs<COLUMNS, B_BY_SUM>(d, a[j], b, true);
        else
            wgmma_ss<COLUMNS, A_BY_SUM, B_BY_SUM>(
                d,
                descriptor(at + group * (A_BY_SUM ? 64 / WIDE * STEP * SPAN : 64 * SPAN), j, M,
                           A_BY_SUM),
                b, true);
    }
    wgmma_commit();
    wgmma_wait<FAULT == 3 ? 1 : 0>();
    wgmma_hold(d);
}

/* Writes the result, unchanged and transposed, to panels in shared memory. */
DEVICE void to_panels(const float (&d)[COLUMNS / 2], u32 out, int t)
{
    int w = t / 32, row = t % 8, i = t % 32 / 8;
#pragma unroll
    for (int j = 0; j < COLUMNS / 16; j++) {
        u32 r[4];
#pragma unroll
        for (int x = 0; x < 4; x++) r[x] = pack_bf16(d[8 * j + 2 * x], d[8 * j + 2 * x + 1]);
        int c = 2 * j + i / 2;
        stmatrix_x4(out + c * 8 / OUT_WIDE * 64 * OUT_WIDE * 2 +
                        panel_chunk<OUT_SWIZZLE>(16 * w + 8 * (i % 2) + row, c % (OUT_WIDE / 8)),
                    r);
        stmatrix_x4_trans(
            out + OUT_BYTES / 2 + panel_chunk(16 * j + 8 * (i / 2) + row, 2 * w + i % 2), r);
    }
}

DEVICE void consume(const places &p, const tensor_map *c, const tensor_map *ct, float *sums, int k,
                    int group, int t)
{
    float d[COLUMNS / 2];
    u32 out = p.out + group * OUT_BYTES;
    mbarrier_wait(p.bias_full, 0);
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++)
        d[i] = pointer<float>(p.bias)[8 * (i >> 2) + 2 * (t % 4) + (i & 1)];
    for (int i = 0; i * STEP < k; i++) {
        int s = i % STAGES;
        mbarrier_wait(p.full + 8 * s, i / STAGES % 2);
        if (FAULT == 4 && t == 0) mbarrier_arrive(p.empty + 8 * s);
        multiply(d, p.stage + s * STAGE_BYTES, group, t);
        if (FAULT != 4 && FAULT != 5 && t == 0) mbarrier_arrive(p.empty + 8 * s);
    }
    to_panels(d, out, t);
    if (FAULT != 6) fence_async();
    named_barrier_sync(1 + group, 128);
    if (t == 0) {
        for (int i = 0; i < COLUMNS; i += OUT_WIDE)
            tma_store(c, out + i * 128, i, 0, 0, 64 * group, blockIdx.x);
        tma_store(ct, out + OUT_BYTES / 2, 64 * group, 0, 0, 0, blockIdx.x);
        tma_store_commit();
        if (FAULT != 7) tma_store_wait_read<0>();
    }
    named_barrier_sync(1 + group, 128);
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++) pointer<float>(out)[i * 128 + t] = d[i];
    fence_async();
    named_barrier_sync(1 + group, 128);
    if (t == 0) {
        bulk_add_f32(sums + (i64)(2 * blockIdx.x + group) * 64 * COLUMNS, out, OUT_BYTES);
        tma_store_commit();
        tma_store_wait<0>();
    }
}

KERNEL_MIN(384, 1)
matmul(const __grid_constant__ tensor_map a, const __grid_constant__ tensor_map b,
       const __grid_constant__ tensor_map c, const __grid_constant__ tensor_map ct,
       const float *bias, float *sums, int k)
{
    const places p = places_of();
    if (threadIdx.x == 0) {
        tma_prefetch_map(&a);
        for (int s = 0; s < STAGES; s++) {
            mbarrier_init(p.full + 8 * s, 1);
            mbarrier_init(p.empty + 8 * s, 2);
        }
        mbarrier_init(p.bias_full, 1);
        fence_barrier_init();
    }
    __syncthreads();
    if (FAULT != 8) dependents_wait();
    dependents_start();
    int role = __shfl_sync(~0u, threadIdx.x / 128, 0);
    if (role == 0) {
        registers_dec<40>();
        if (threadIdx.x == 0) produce(p, &a, &b, bias, k);
    } else {
        registers_inc<232>();
        consume(p, &c, &ct, sums, k, role - 1, threadIdx.x % 128);
    }
}
