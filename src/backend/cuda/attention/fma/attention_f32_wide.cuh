/* attention_f32_wide.cuh - tiles of float attention, head size over 128, forward and backward.
 *
 * A block keeps its own OWN_ROWS rows, queries or keys, in shared memory and walks over the rows of
 * the other side, TILE at a time. cp.async loads the rows of the other side in slices of at most
 * 16 KiB, two slices ahead of the FMAs: 64 rows of 64 columns for scores, 16 rows of all columns
 * for sums. 256 threads form a grid of 16 x 16, (x, y); a warp has LANES_X values of x. A thread
 * has the R own rows y + 16i, for scores the other rows x + 16j, for sums the columns 64c + 4x ...
 * 64c + 4x + 3. It has 8 to 21 FMAs per read of shared memory, 5 to 6 if OWN_ROWS is 32; the reads
 * of a warp have no bank conflicts. Scores reach add_sums through shared memory, as (other rows,
 * own rows), with own row y + 16i at R y + i. Constants: HEAD_SIZE, a multiple of 4 (the columns
 * HEAD_SIZE ... WIDTH - 1 are zeros), OWN_ROWS 32, 64 or 128, LANES_X 8 or 16. */
#pragma once
#include "mma.cuh"

enum {
    D = HEAD_SIZE, OWN = OWN_ROWS,
    R = OWN / 16, THREADS = 256,
    TILE = 64,
    OTHER_ROWS = TILE / 16,    /* other rows of a thread */
    SLICE = 64,                /* columns */
    PARTS = (D + SLICE - 1) / SLICE, /* slices of columns */
    WIDTH = PARTS * SLICE,
    PITCH = WIDTH + 4,         /* floats; adjacent rows use different banks */
    SLICE_PITCH = SLICE + 4,
    SLICE_ROWS = 16,
    ROW_PARTS = TILE / SLICE_ROWS, /* slices of rows */
    STAGES = 3,
    OWN_FLOATS = OWN * PITCH,
    STAGE_FLOATS = TILE * SLICE_PITCH,
    SCORE_PITCH = OWN + 4,
    SCORE_FLOATS = TILE * SCORE_PITCH,
};
extern __shared__ __align__(1024) u8 shared_memory[];

typedef float sums[R][PARTS][4];
typedef float scores[R][OTHER_ROWS];

/* Starts copying ROWS rows from `first` on, COLUMNS from `column` on, to rows TO_PITCH apart. Rows
 * from T on and columns from D on become zero. */
template <int ROWS, int COLUMNS, int TO_PITCH>
DEVICE void copy_block(float *to, const float *rows, i64 pitch, int first, int T, int column)
{
    UNROLL for (int at = 0; at < ROWS * COLUMNS / 4; at += THREADS) {
        int i = at + (int)threadIdx.x, row = i / (COLUMNS / 4), c = i % (COLUMNS / 4) * 4;
        bool there = first + row < T && column + c < D;
        const float *from = there ? rows + (first + row) * pitch + column + c : rows;
        cp_async_16(shared_address(to + row * TO_PITCH + c), from, there ? 16 : 0);
    }
}
DEVICE void copy_own(float *to, const float *rows, i64 pitch, int first, int T)
{
    copy_block<OWN, WIDTH, PITCH>(to, rows, pitch, first, T, 0);
}
/* Start copying slice `part` of a tile: copy_columns for scores, copy_rows for sums. */
DEVICE void copy_columns(float *stage, const float *rows, i64 pitch, int first, int T, int part)
{
    copy_block<TILE, SLICE, SLICE_PITCH>(stage, rows, pitch, first, T, part * SLICE);
}
DEVICE void copy_rows(float *stage, const float *rows, i64 pitch, int first, int T, int part)
{
    copy_block<SLICE_ROWS, WIDTH, WIDTH>(stage, rows, pitch, first + part * SLICE_ROWS, T, 0);
}
/* Waits for the older of two slices in flight. When all threads have passed, no thread reads the
 * previous slice any more, so its stage is free. */
DEVICE void next_slice()
{
    cp_async_wait<STAGES - 2>();
    __syncthreads();
}

/* Lanes that differ only in bit 0 read the same rows of the other side; lanes that differ only in
 * bit 1 read the same own rows. The hardware merges such equal 16-byte reads of a warp's lanes. */
DEVICE int lane_x()
{
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    return warp % (16 / LANES_X) * LANES_X + lane / 2 % LANES_X;
}
DEVICE int lane_y()
{
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    return warp / (16 / LANES_X) * (WARP / LANES_X) + lane / (2 * LANES_X) * 2 + lane % 2;
}

DEVICE void clear(scores &s)
{
    UNROLL for (int i = 0; i < R; i++)
        UNROLL for (int j = 0; j < OTHER_ROWS; j++) s[i][j] = 0;
}
DEVICE void clear(sums &sum)
{
    UNROLL for (int i = 0; i < R; i++)
        UNROLL for (int c = 0; c < PARTS; c++)
            UNROLL for (int k = 0; k < 4; k++) sum[i][c][k] = 0;
}
/* s += the dot products of own rows and the slice's rows over the columns of slice `part`.
 * UNROLLED: iterations that are unrolled together; more may spill registers. */
template <int UNROLLED>
DEVICE void add_scores(scores &s, const float *own, const float *slice, int part)
{
    own += lane_y() * PITCH + part * SLICE;
    slice += lane_x() * SLICE_PITCH;
#pragma unroll (UNROLLED)
    for (int d = 0; d < SLICE; d += 4) {
        floats<4> b[OTHER_ROWS];
        UNROLL for (int j = 0; j < OTHER_ROWS; j++)
            b[j] = load<4>(slice + 16 * j * SLICE_PITCH + d);
        UNROLL for (int i = 0; i < R; i++) {
            floats<4> a = load<4>(own + 16 * i * PITCH + d);
            UNROLL for (int k = 0; k < 4; k++)
                UNROLL for (int j = 0; j < OTHER_ROWS; j++) s[i][j] += a[k] * b[j][k];
        }
    }
}
/* sum += s^T times the rows of slice `part` */
template <int UNROLLED>
DEVICE void add_sums(sums &sum, const float *s, const float *slice, int part)
{
    s += part * SLICE_ROWS * SCORE_PITCH + lane_y() * R;
    slice += lane_x() * 4;
#pragma unroll (UNROLLED)
    for (int t = 0; t < SLICE_ROWS; t++) {
        floats<R> a = load<R>(s + t * SCORE_PITCH);
        UNROLL for (int c = 0; c < PARTS; c++) {
            floats<4> b = load<4>(slice + t * WIDTH + c * SLICE);
            UNROLL for (int i = 0; i < R; i++)
                UNROLL for (int k = 0; k < 4; k++) sum[i][c][k] += a[i] * b[k];
        }
    }
}
/* Puts scores where add_sums reads them. */
DEVICE void put_scores(float *to, const scores &s)
{
    to += lane_x() * SCORE_PITCH + lane_y() * R;
    UNROLL for (int j = 0; j < OTHER_ROWS; j++) {
        floats<R> a;
        UNROLL for (int i = 0; i < R; i++) a[i] = s[i][j];
        store<R>(to + 16 * j * SCORE_PITCH, a);
    }
}
/* Writes own row i of a thread, which starts at `row`, times `scale`. */
DEVICE void store_row(float *row, const sums &sum, int i, float scale)
{
    UNROLL for (int c = 0; c < PARTS; c++) {
        int column = c * SLICE + lane_x() * 4;
        floats<4> a;
        UNROLL for (int k = 0; k < 4; k++) a[k] = sum[i][c][k] * scale;
        if (column < D) store<4>(row + column, a);
    }
}
