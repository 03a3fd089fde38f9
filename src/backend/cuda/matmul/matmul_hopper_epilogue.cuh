/* matmul_hopper_epilogue.cuh - epilogues of matmul_hopper.cu: bias and GELU, or GELU's slope.
 *
 * A warp processes chunks of 16 rows by 64 columns, from registers into its own panel of shared
 * memory and from there by TMA, so no warp waits for another. The WGMMAs of the other consumer run
 * concurrently. At full speed these WGMMAs and the incoming stages would need 138 bytes a clock of
 * shared memory, which has 128. Measured: an epilogue instruction takes about two clocks, and a
 * chunk without arithmetic 800. Each scheduler has one warp in its epilogue, so nothing hides a
 * wait: loads are issued early, and a chunk is stored after the first arithmetic of the next chunk.
 */
#pragma once

struct panels {
    u32 at, arrived;
    int count; /* the number of chunks of earlier tiles that this warp has processed */
};
DEVICE u32 in_panel(u32 panel, int j)
{
    int lane = threadIdx.x % WARP;
    return panel + panel_chunk(lane % 16, 2 * j + lane / 16);
}
/* Chunk n of a warp from tile row `first`: n = c + t CHUNKS for the t-th 64 rows, c-th columns. */
DEVICE position chunk_of(position first, int n)
{
    return {first.row + n / CHUNKS * 64, first.column + n % CHUNKS * CHUNK};
}
DEVICE void store_panel(const tensor_map *map, u32 panel, position at)
{
    tma_store(map, panel, at.column, at.row, 0, 0, 0);
}

#if WHAT & 1
enum { OUTS = KEEP ? 2 : 1, SLOTS = PANELS / OUTS };

/* Columns 2 l and 2 l + 1 of each chunk's bias, in lane l. */
struct biases {
    floats<2> of[CHUNKS];
};
DEVICE void load_bias(biases &b, const T_BIAS *bias, int column, int N)
{
    UNROLL for (int c = 0; c < CHUNKS; c++) {
        int at = column + c * CHUNK + 2 * (threadIdx.x % WARP);
        b.of[c][0] = b.of[c][1] = 0;
        if (at < N) b.of[c] = load<2>(bias + at); /* N is even */
    }
}
/* The bias of this thread's two columns of the k-th eight of a chunk. */
DEVICE floats<2> bias_at(const floats<2> &of, int k)
{
    floats<2> r;
    int from = 4 * k + threadIdx.x % 4;
    r[0] = __shfl_sync(~0u, of[0], from);
    r[1] = __shfl_sync(~0u, of[1], from);
    return r;
}
DEVICE u32 slot_of(const panels &p, int n)
{
    return p.at + (p.count + n) % SLOTS * OUTS * PANEL_BYTES;
}
DEVICE void store_gelu(const panels &p, const tensor_map *y_map, const tensor_map *x_map, int n,
                       position first)
{
    u32 from = slot_of(p, n);
    fence_async();
    __syncwarp();
    if (threadIdx.x % WARP) return;
    store_panel(y_map, from, chunk_of(first, n));
    if (KEEP) store_panel(x_map, from + PANEL_BYTES, chunk_of(first, n));
    tma_store_commit();
}
/* Processes chunk n, with sums `s`. Stores chunk n - 1, and also n if it is the last. */
DEVICE void epilogue_gelu(const float *s, const panels &p, const tensor_map *y_map,
                          const tensor_map *x_map, const biases &bias, int n, position first)
{
    u32 to = slot_of(p, n);
    UNROLL for (int j = 0; j < CHUNK / 16; j++) {
        u32 x[4], y[4];
        floats<2> b[2];
        if (BIAS)
            b[0] = bias_at(bias.of[n % CHUNKS], 2 * j),
            b[1] = bias_at(bias.of[n % CHUNKS], 2 * j + 1);
        UNROLL for (int i = 0; i < 4; i++) {
            float low = s[8 * j + 2 * i], high = s[8 * j + 2 * i + 1];
            if (BIAS) low += b[i / 2][0], high += b[i / 2][1];
            x[i] = pack_bf16(low, high);
            y[i] = pack_bf16(fast_gelu<TANH>(low), fast_gelu<TANH>(high));
        }
        if (j == 0) {
            computed(y);
            if (KEEP) computed(x);
            if (n > 0) store_gelu(p, y_map, x_map, n - 1, first);
            /* waits until the earlier store from this slot has read the slot */
            if (threadIdx.x % WARP == 0) tma_store_wait_read<SLOTS - 1>();
            __syncwarp();
        }
        stmatrix_x4(in_panel(to, j), y);
        if (KEEP) stmatrix_x4(in_panel(to + PANEL_BYTES, j), x);
    }
    if (n == EACH - 1) store_gelu(p, y_map, x_map, n, first);
}
#endif

#if WHAT & 2
DEVICE u32 panel_of(const panels &p, int n)
{
    return p.at + (p.count + n) % PANELS * PANEL_BYTES;
}
DEVICE u32 arrived_of(const panels &p, int n)
{
    return p.arrived + 8 * ((p.count + n) % PANELS);
}
/* Loads x of chunk n into its panel, where y replaces it. Called by one lane. */
DEVICE void load_x(const panels &p, const tensor_map *x_map, int n, position first)
{
    position at = chunk_of(first, n);
    mbarrier_expect(arrived_of(p, n), PANEL_BYTES);
    tma_load(panel_of(p, n), x_map, arrived_of(p, n), at.column, at.row, 0, 0, 0);
}
DEVICE void load_first_x(const panels &p, const tensor_map *x_map, position first)
{
    if (threadIdx.x % WARP) return;
    tma_store_wait_read<0>();
#pragma unroll 1
    for (int n = 0; n < min(PANELS, EACH); n++) load_x(p, x_map, n, first);
}
DEVICE void store_grad(const panels &p, const tensor_map *y_map, const tensor_map *x_map, int n,
                       position first)
{
    fence_async();
    __syncwarp();
    if (threadIdx.x % WARP) return;
    store_panel(y_map, panel_of(p, n), chunk_of(first, n));
    tma_store_commit();
    if (n > 0 && n - 1 + PANELS < EACH) { /* the previous store has read its panel */
        tma_store_wait_read<1>();
        load_x(p, x_map, n - 1 + PANELS, first);
    }
}
/* Like epilogue_gelu; all of a chunk's x is loaded at once. */
DEVICE void epilogue_grad(const float *s, const panels &p, const tensor_map *y_map,
                          const tensor_map *x_map, int n, position first)
{
    u32 x[CHUNK / 16][4];
    mbarrier_wait(arrived_of(p, n), (p.count + n) / PANELS % 2);
    UNROLL for (int j = 0; j < CHUNK / 16; j++) ldmatrix_x4(x[j], in_panel(panel_of(p, n), j));
    UNROLL for (int j = 0; j < CHUNK / 16; j++) {
        UNROLL for (int i = 0; i < 4; i++) {
            float low = __uint_as_float(x[j][i] << 16),
                  high = __uint_as_float(x[j][i] & 0xffff0000u);
            x[j][i] = pack_bf16(fast_grad<TANH>(s[8 * j + 2 * i], low),
                                fast_grad<TANH>(s[8 * j + 2 * i + 1], high));
        }
        if (j == 0 && n > 0) {
            computed(x[0]);
            store_grad(p, y_map, x_map, n - 1, first);
        }
        stmatrix_x4(in_panel(panel_of(p, n), j), x[j]);
    }
    if (n == EACH - 1) store_grad(p, y_map, x_map, n, first);
}
#endif
