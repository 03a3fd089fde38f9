/* attention_grad_f32.cu - attention backward in full float precision.
 *
 * dy (B,T,C), qkv (B,T,C+2*KV*D), delta (B,H,T), log-sum-exp (B,H,T) -> dqkv like qkv. Two kernels,
 * so that every sum has one owner. A block owns OWN keys (dK, dV) or queries (dQ) of a head, keeps
 * them in shared memory and walks over the rows of the other side, 32 at a time; a block of keys
 * does so for all query heads of its group in turn. Scores and gradients go through shared memory.
 * 256 threads form a grid of 16 x 16. For scores a thread has R adjacent own rows and 2 other rows,
 * for sums the same R rows and D/16 columns. Bound by FMAs and by reading their operands: with R 4
 * and D 64 or 128, 32 to 64 FMAs for 6 reads of 16 bytes. HEAD_SIZE is a multiple of 16, at most
 * 128 (attention_grad_f32_wide.cu has the larger sizes), GROUP H / KV, OWN_ROWS 32 or 64. */
#include "attention_grad_f32.cuh"

enum {
    D = HEAD_SIZE, THREADS = 256,
    OWN = OWN_ROWS,
    R = OWN / 16,
    TILE = 32,
    PITCH = D + 4, /* of a row; adjacent rows use different banks */
    SCORE_PITCH = OWN + 4,
    WIDE = D % 64 == 0 ? 4 : D % 32 == 0 ? 2 : 1, /* adjacent columns of a thread, one read */
    COLUMNS = D / 16, OWN_FLOATS = OWN * PITCH,
    TILE_FLOATS = TILE * PITCH, SCORE_FLOATS = TILE * SCORE_PITCH,
};
extern __shared__ __align__(1024) u8 shared_memory[];

template <int ROWS>
DEVICE void load_rows(float *tile, const float *rows, int pitch, int first, int T)
{
    for (int i = threadIdx.x; i < ROWS * D / 4; i += THREADS) {
        int row = i / (D / 4), column = i % (D / 4) * 4;
        floats<4> a = {{0, 0, 0, 0}};
        if (first + row < T) a = load<4>(rows + (i64)(first + row) * pitch + column);
        store<4>(tile + row * PITCH + column, a);
    }
}

/* s[i][j] = dot product of own row y R + i and other row x + 16 j */
DEVICE void multiply(float (&s)[R][2], const float *own, const float *other)
{
    int x = threadIdx.x % 16, y = threadIdx.x / 16;
    UNROLL for (int i = 0; i < R; i++) s[i][0] = s[i][1] = 0;
#pragma unroll 4
    for (int d = 0; d < D; d += 4) {
        floats<4> a[R], b[2];
        UNROLL for (int i = 0; i < R; i++) a[i] = load<4>(own + (y * R + i) * PITCH + d);
        UNROLL for (int j = 0; j < 2; j++) b[j] = load<4>(other + (x + 16 * j) * PITCH + d);
        UNROLL for (int i = 0; i < R; i++)
            UNROLL for (int j = 0; j < 2; j++)
                UNROLL for (int k = 0; k < 4; k++) s[i][j] += a[i][k] * b[j][k];
    }
}
/* sum += s^T times the other rows; s is (other rows, own rows). */
DEVICE void accumulate(float (&sum)[R][COLUMNS], const float *s, const float *other)
{
    int x = threadIdx.x % 16, y = threadIdx.x / 16;
#pragma unroll 4
    for (int t = 0; t < TILE; t++) {
        floats<R> a = load<R>(s + t * SCORE_PITCH + y * R);
        UNROLL for (int c = 0; c < COLUMNS; c += WIDE) {
            floats<WIDE> b = load<WIDE>(other + t * PITCH + c * 16 + x * WIDE);
            UNROLL for (int i = 0; i < R; i++)
                UNROLL for (int k = 0; k < WIDE; k++) sum[i][c + k] += a[i] * b[k];
        }
    }
}
DEVICE void clear(float (&sum)[R][COLUMNS])
{
    UNROLL for (int i = 0; i < R; i++)
        UNROLL for (int c = 0; c < COLUMNS; c++) sum[i][c] = 0;
}
DEVICE void store_sums(float *rows, int pitch, int first, int T, const float (&sum)[R][COLUMNS],
                       float scale)
{
    int x = threadIdx.x % 16, y = threadIdx.x / 16;
    UNROLL for (int i = 0; i < R; i++)
        UNROLL for (int c = 0; c < COLUMNS; c += WIDE) {
            floats<WIDE> a;
            UNROLL for (int k = 0; k < WIDE; k++) a[k] = sum[i][c + k] * scale;
            if (first + y * R + i < T)
                store<WIDE>(rows + (i64)(first + y * R + i) * pitch + c * 16 + x * WIDE, a);
        }
}

/* Grid (blocks of queries, H, B). */
KERNEL_MIN(THREADS, 1)
attention_grad_queries(const float *dy, const float *qkv, const float *lse, const float *delta,
                       const int *step, float *dqkv, float scale, int T, int H, u32 seed, u32 site,
                       int threshold)
{
    float *q = (float *)shared_memory, *dy_rows = q + OWN_FLOATS, *k = dy_rows + OWN_FLOATS,
          *v = k + TILE_FLOATS;
    float *ds = v + TILE_FLOATS;
    int x = threadIdx.x % 16, y = threadIdx.x / 16, bh = blockIdx.z * H + blockIdx.y,
        pitch = (GROUP + 2) * (H / GROUP) * D;
    int first_query = ((int)gridDim.x - 1 - (int)blockIdx.x) * OWN; /* most keys first */
    int seen = CAUSAL && first_query + OWN < T ? first_query + OWN : T;
    i64 head = (i64)blockIdx.z * T * pitch + blockIdx.y * D;
    i64 keys = head + (H + blockIdx.y / GROUP - blockIdx.y) * D, values = keys + H / GROUP * D;
    load_rows<OWN>(q, qkv + head, pitch, first_query, T);
    load_rows<OWN>(dy_rows, dy + ((i64)blockIdx.z * T * H + blockIdx.y) * D, H * D, first_query, T);
    float sum[R][COLUMNS], row_lse[R], row_delta[R];
    clear(sum);
    UNROLL for (int i = 0; i < R; i++) {
        int t = first_query + y * R + i;
        row_lse[i] = t < T ? lse[(i64)bh * T + t] : 0;
        row_delta[i] = t < T ? delta[(i64)bh * T + t] : 0;
    }
    for (int first_key = 0; first_key < seen; first_key += TILE) {
        load_rows<TILE>(k, qkv + keys, pitch, first_key, T);
        load_rows<TILE>(v, qkv + values, pitch, first_key, T);
        __syncthreads();
        float s[R][2], dp[R][2];
        multiply(s, q, k);
        multiply(dp, dy_rows, v);
        UNROLL for (int j = 0; j < 2; j++) {
            int key = first_key + x + 16 * j;
            floats<R> out;
            UNROLL for (int i = 0; i < R; i++) {
                int query = first_query + y * R + i;
                float keep = DROPOUT ? keep_scale(seed, site, *step, bh, query, key, threshold) : 1;
                gradient(s[i][j], dp[i][j], row_lse[i], row_delta[i], scale, keep,
                         query < T && key < T && (!CAUSAL || key <= query));
                out[i] = s[i][j];
            }
            store<R>(ds + (x + 16 * j) * SCORE_PITCH + y * R, out);
        }
        __syncthreads();
        accumulate(sum, ds, k);
        __syncthreads();
    }
    store_sums(dqkv + head, pitch, first_query, T, sum, scale);
}

/* Grid (blocks of keys, KV, B). */
KERNEL_MIN(THREADS, 1)
attention_grad_keys(const float *dy, const float *qkv, const float *lse, const float *delta,
                    const int *step, float *dqkv, float scale, int T, int H, u32 seed, u32 site,
                    int threshold)
{
    float *k = (float *)shared_memory, *v = k + OWN_FLOATS, *q = v + OWN_FLOATS,
          *dy_rows = q + TILE_FLOATS;
    float *p = dy_rows + TILE_FLOATS, *ds = p + SCORE_FLOATS, *stats = ds + SCORE_FLOATS;
    int x = threadIdx.x % 16, y = threadIdx.x / 16, pitch = (GROUP + 2) * (H / GROUP) * D;
    int first_key = blockIdx.x * OWN, first_tile = CAUSAL ? first_key : 0;
    i64 batch = (i64)blockIdx.z * T * pitch, keys = batch + (H + blockIdx.y) * D,
        values = keys + H / GROUP * D;
    load_rows<OWN>(k, qkv + keys, pitch, first_key, T);
    load_rows<OWN>(v, qkv + values, pitch, first_key, T);
    float dk[R][COLUMNS], dv[R][COLUMNS];
    clear(dk);
    clear(dv);
    for (int member = 0, first_query = first_tile; member < GROUP;) { /* query head of the group */
        int head = blockIdx.y * GROUP + member, bh = blockIdx.z * H + head;
        load_rows<TILE>(q, qkv + batch + head * D, pitch, first_query, T);
        load_rows<TILE>(dy_rows, dy + ((i64)blockIdx.z * T * H + head) * D, H * D, first_query, T);
        if (threadIdx.x < 2 * TILE) {
            int t = first_query + threadIdx.x % TILE;
            stats[threadIdx.x] = t < T ? (threadIdx.x < TILE ? lse : delta)[(i64)bh * T + t] : 0;
        }
        __syncthreads();
        float s[R][2], dp[R][2];
        multiply(s, k, q);
        multiply(dp, v, dy_rows);
        UNROLL for (int j = 0; j < 2; j++) {
            int row = x + 16 * j, query = first_query + row;
            floats<R> used, out;
            UNROLL for (int i = 0; i < R; i++) {
                int key = first_key + y * R + i;
                float keep = DROPOUT ? keep_scale(seed, site, *step, bh, query, key, threshold) : 1;
                gradient(s[i][j], dp[i][j], stats[row], stats[TILE + row], scale, keep,
                         query < T && key < T && (!CAUSAL || key <= query));
                used[i] = dp[i][j];
                out[i] = s[i][j];
            }
            store<R>(p + row * SCORE_PITCH + y * R, used);
            store<R>(ds + row * SCORE_PITCH + y * R, out);
        }
        __syncthreads();
        accumulate(dv, p, dy_rows);
        accumulate(dk, ds, q);
        __syncthreads();
        first_query += TILE;
        if (first_query >= T) first_query = first_tile, member++;
    }
    store_sums(dqkv + keys, pitch, first_key, T, dk, scale);
    store_sums(dqkv + values, pitch, first_key, T, dv, 1);
}
