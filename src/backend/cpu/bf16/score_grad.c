#include "backend/cpu/bf16/score_grad.h"

#include "backend/cpu/bf16/softmax.h"

/* p and ds of 32 queries and one key. */
struct key_row {
    vf p[2], ds[2];
};

INLINE struct key_row one_key(const struct score_block *b, int k, const bool dropout,
                              __mmask32 kept)
{
    struct key_row l;
    int64_t at = k / TILE_SIDE * b->row_stride * C_TILE_FLOATS + k % TILE_SIDE * TILE_SIDE;
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++, at += C_TILE_FLOATS) {
        vf x = vf_load(b->dp + at), d = -vf_load(b->delta + i * TILE_SIDE);
        l.p[i] = exp2_approx(vf_load(b->s + at) * b->scale - vf_load(b->lse + i * TILE_SIDE));
        if (dropout)
            d = _mm512_mask3_fmadd_ps(x, vf_all(b->keep), d, (__mmask16)(kept >> 16 * i));
        else
            d += x;
        l.ds[i] = l.p[i] * d;
    }
    return l;
}

/* `edge` is true if the mask or the end of the keys excludes some elements. */
INLINE void gradients(const struct score_block *b, const bool edge, const bool dropout)
{
    for (int k = 0; k < TILE_K; k += 2) {
        __m512i ds[2];
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            int key = k + i;
            uint32_t kept = ~0u, seen = ~0u;
            if (dropout) memcpy(&kept, b->kept + key * b->kept_stride, sizeof kept);
            if (edge) seen = key >= b->keys ? 0 : b->diagonal ? ~0u << key : ~0u;
            struct key_row l = one_key(b, key, dropout, kept);
            __m512i p;
            if (edge || dropout)
                p = to_bf16_masked(seen & kept, l.p[0], l.p[1]);
            else
                p = to_bf16(l.p[0], l.p[1]);
            ds[i] = edge ? to_bf16_masked(seen, l.ds[0], l.ds[1]) : to_bf16(l.ds[0], l.ds[1]);
            int64_t at = key / TILE_SIDE * b->p_row_stride + key % TILE_SIDE * 64;
            _mm512_store_si512(b->p + at, p);
            _mm512_store_si512(b->ds + at, ds[i]);
        }
        _mm512_store_si512(b->interleaved + k / 2 * 64, _mm512_unpacklo_epi16(ds[0], ds[1]));
        _mm512_store_si512(b->interleaved + TILE_BYTES + k / 2 * 64,
                           _mm512_unpackhi_epi16(ds[0], ds[1]));
    }
}

void VEC(score_gradients)(const struct score_block *b)
{
    bool edge = b->diagonal || b->keys < TILE_K;
    if (edge && b->kept)
        gradients(b, true, true);
    else if (edge)
        gradients(b, true, false);
    else if (b->kept)
        gradients(b, false, true);
    else
        gradients(b, false, false);
}
