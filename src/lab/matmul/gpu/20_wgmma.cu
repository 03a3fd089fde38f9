/* 20_wgmma.cu - the tensor cores of Hopper read tiles from shared memory, and TMA brings them.
 *
 * One wgmma adds the products of 64 rows of A and up to 256 columns of B over 16 values of k. Four
 * warps, a warpgroup, issue it together; it reads both operands from shared memory, so no thread
 * loads an element of A or B. Only the sums are in registers, spread over the 128 threads.
 *
 * TMA loads the tiles: one thread requests a box of the matrix, and a barrier in shared memory
 * counts the bytes that arrive. A row of a box has 64 elements, 128 bytes; TMA permutes its chunks
 * of 16 bytes so that wgmma reads them without bank conflicts. Elements outside the matrix are
 * zero.
 *
 * Nothing overlaps in a block: it loads a tile, waits, multiplies and waits. Other blocks on the
 * same multiprocessor fill the gaps. A tile of 128 x 128 needs half as many bytes per FLOP as a
 * tile of 64 x 64. */
#include "hopper.cuh"

enum {
    ROWS = COLUMNS, DEPTH = 64,     /* a tile of C, and the part of k that is loaded at once */
    PANEL = 64 * 128,               /* bytes of 64 rows of 64 elements */
    A_BYTES = ROWS / 64 * PANEL,    /* panels one below the other, with 64 values of k */
    B_BYTES = COLUMNS / 64 * PANEL, /* panels side by side, with 64 values of k */
};

KERNEL(128)
matmul(const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map,
       ELEMENT *c, const ELEMENT *, const ELEMENT *, i64 m, i64 n, i64 k)
{
    extern __shared__ __align__(1024) u8 shared[];
    u32 a = shared_address(shared), b = a + A_BYTES, full = b + B_BYTES;
    int row = blockIdx.y * ROWS, column = blockIdx.x * COLUMNS, steps = ceil_div((int)k, DEPTH);
    /* Descriptors of the operands; adding 1 moves by 16 bytes. */
    u64 rows = wgmma_descriptor(a, 16, 1024), columns = wgmma_descriptor(b, PANEL, 1024);
    float sum[ROWS / 64][COLUMNS / 2];
    if (threadIdx.x == 0) {
        mbarrier_init(full, 1);
        fence_barrier_init();
    }
    __syncthreads();
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        if (threadIdx.x == 0) {
            mbarrier_expect(full, A_BYTES + B_BYTES);
            tma_load(a, &a_map, full, step * DEPTH, row, 0, 0, 0);
            UNROLL for (int i = 0; i < COLUMNS / 64; i++)
                tma_load(b + i * PANEL, &b_map, full, column + 64 * i, step * DEPTH, 0, 0, 0);
        }
        mbarrier_wait(full, step % 2);
        wgmma_fence();
        UNROLL for (int j = 0; j < DEPTH / 16; j++) /* 32 bytes of a row of A, 16 rows of B */
            UNROLL for (int t = 0; t < ROWS / 64; t++)
                wgmma_ss<COLUMNS, false, true>(sum[t], rows + t * PANEL / 16 + 2 * j,
                                               columns + 128 * j, step > 0 || j > 0);
        wgmma_commit();
        wgmma_wait<0>();
        __syncthreads(); /* all four warps have read the tiles, which the next copies overwrite */
    }
    UNROLL for (int t = 0; t < ROWS / 64; t++) wgmma_hold(sum[t]);

    /* In every 8 columns, a thread has two adjacent elements of each of two rows, 8 apart. */
    row += threadIdx.x / WARP * 16 + threadIdx.x % WARP / 4;
    column += threadIdx.x % 4 * 2;
    UNROLL for (int t = 0; t < ROWS / 64; t++)
        UNROLL for (int i = 0; i < COLUMNS / 2; i += 2) {
            int down = row + t * 64 + i / 2 % 2 * 8, right = column + i / 4 * 8;
            floats<2> two = {{sum[t][i], sum[t][i + 1]}};
            if (down < (int)m && right < (int)n) store<2>(c + down * n + right, two);
        }
}
