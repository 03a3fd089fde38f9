/* tiles.h - attention of a block of queries to all their keys, tile by tile. */
#ifndef LAB_ATTENTION_CPU_TILES_H
#define LAB_ATTENTION_CPU_TILES_H

#include "lab/attention/cpu/heads.h"

enum { TILE = 64, QUERIES = 4, TILE_VECTORS = TILE / W };

/* The buffers of a thread: a transposed tile of keys (16 KiB), scores of QUERIES queries, and
 * outputs, maxima and sums of TILE queries. */
struct tiles {
    float key[HEAD][TILE], score[QUERIES][TILE], out[TILE][HEAD], top[TILE], sum[TILE];
};

INLINE void transpose_keys(struct tiles *t, const struct head *of, int64_t first, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        for (int d = 0; d < HEAD; d++) t->key[d][j] = of->k[(first + j) * of->stride + d];
    for (int d = 0; d < HEAD; d++)
        for (int64_t j = n; j < TILE; j++) t->key[d][j] = 0;
}

/* Computes the scores of `rows` <= QUERIES queries with the keys of the tile. Each step multiplies
 * one element of a query, broadcast, by a vector with that element of W keys. */
INLINE void scores(struct tiles *t, const struct head *of, int64_t first, int64_t rows)
{
    enum { TOGETHER = 2 }; /* vectors of keys at a time; QUERIES x TOGETHER sums fit in registers */
    const float *q[QUERIES];
    for (int r = 0; r < QUERIES; r++) q[r] = of->q + (first + (r < rows ? r : 0)) * of->stride;
    for (int v = 0; v < TILE_VECTORS; v += TOGETHER) {
        vf sum[QUERIES][TOGETHER] = {{{0}}};
        for (int d = 0; d < HEAD; d++)
            for (int k = 0; k < TOGETHER; k++) {
                vf key = vf_load(&t->key[d][(v + k) * W]);
                for (int r = 0; r < QUERIES; r++) sum[r][k] += q[r][d] * key;
            }
        for (int r = 0; r < QUERIES; r++)
            for (int k = 0; k < TOGETHER; k++)
                vf_store(&t->score[r][(v + k) * W], sum[r][k] * SCALE);
    }
}

/* Adds a tile of n keys to one query (online softmax). If the maximum grows, the sums so far are
 * multiplied by e^(old - new). */
INLINE void add_tile(struct tiles *t, const float *score, int64_t row, const struct head *of,
                     int64_t first, int64_t n)
{
    float top = t->top[row];
    for (int64_t j = 0; j < n; j++) top = score[j] > top ? score[j] : top;
    float p[TILE], factor = expf(t->top[row] - top), sum = 0;
    for (int v = 0; v < TILE_VECTORS; v++)
        vf_store(p + v * W, vf_exp(vf_load(score + v * W) - top));
    vf out[HEAD_VECTORS];
    for (int i = 0; i < HEAD_VECTORS; i++) out[i] = vf_load(&t->out[row][i * W]) * factor;
    for (int64_t j = 0; j < n; j++) {
        sum += p[j];
        const float *v = of->v + (first + j) * of->stride;
        for (int i = 0; i < HEAD_VECTORS; i++) out[i] += p[j] * vf_load(v + i * W);
    }
    for (int i = 0; i < HEAD_VECTORS; i++) vf_store(&t->out[row][i * W], out[i]);
    t->top[row] = top;
    t->sum[row] = t->sum[row] * factor + sum;
}

/* Attention of queries first ... first + rows - 1 of a head, rows <= TILE. */
INLINE void attend(struct tiles *t, const struct head *of, int64_t first, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        t->top[i] = -INFINITY, t->sum[i] = 0;
        for (int d = 0; d < HEAD; d++) t->out[i][d] = 0;
    }
    int64_t end = keys_of(of, first + rows - 1);
    for (int64_t k = 0; k < end; k += TILE) {
        int64_t n = end - k < TILE ? end - k : TILE;
        transpose_keys(t, of, k, n);
        for (int64_t i = 0; i < rows; i += QUERIES) {
            int64_t few = rows - i < QUERIES ? rows - i : QUERIES;
            scores(t, of, first + i, few);
            for (int64_t r = 0; r < few; r++) {
                int64_t seen = keys_of(of, first + i + r) - k;
                if (seen > 0) add_tile(t, t->score[r], i + r, of, k, seen < n ? seen : n);
            }
        }
    }
    for (int64_t i = 0; i < rows; i++)
        for (int d = 0; d < HEAD; d++)
            of->y[(first + i) * of->out_stride + d] = t->out[i][d] / t->sum[i];
}

#endif
