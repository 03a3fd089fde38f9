/* blocks.h - the sizes of tiles and blocks, for rungs of matmul and for matmul_cpu.c. */
#ifndef LAB_MATMUL_CPU_BLOCKS_H
#define LAB_MATMUL_CPU_BLOCKS_H

/* The register tile of an instruction set: TALL rows of WIDE vectors. Registers hold its sums, a
 * row of B and a number of A. With AVX-512 the sums take 28 of 32 registers, with AVX2 12 of 16,
 * with NEON 24 of 32, with SSE2 8 of 16. SSE2 also needs registers for products, as it has no
 * FMA. */
enum {
    TALL_avx512 = 14,
    WIDE_avx512 = 2,
    TALL_avx2 = 6,
    WIDE_avx2 = 2,
    TALL_sse2 = 4,
    WIDE_sse2 = 2,
    TALL_neon = 8,
    WIDE_neon = 3,
    TALL_plain = 4,
    WIDE_plain = 2
};

/* A panel of B, DEEP rows of a tile's width, is read again for each tile below the first, so it
 * should stay in L1 (32 or 48 KiB). The panel has 24 KiB with AVX2 and 48 KiB with AVX-512; if L1
 * is too small, L2 delivers the rest fast enough. With a larger DEEP, C would be read and written
 * less often. A block of A, HIGH rows and DEEP columns, 252 KiB, is read again for each panel of B,
 * so it should stay in L2 (512 KiB or more). HIGH is a multiple of every TALL. A block of B, DEEP
 * rows and BROAD columns, 6 MiB, is read again for each block of A, so it should stay in L3. */
enum { DEEP = 384, HIGH = 168, BROAD = 4096 };

/* The columns of the widest tile, and the rows of the highest. */
enum { MOST_COLUMNS = 32, MOST_ROWS = 14 };

#endif
