#include "backend/cpu/bf16/score_grad.h"

#include "backend/cpu/bf16/softmax.h"

/* 32 queries against one key. */
struct line {
    vf p[2], ds[2];
};

INLINE struct line one_line(const struct score_block *b, int k, const bool dropout, __mmask32 kept)
{
    struct line l;
    int64_t at = k / SIDE * b->down * C_TILE + k % SIDE * SIDE;
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++, at += C_TILE) {
        vf x = vf_load(b->dp + at), d = -vf_load(b->delta + i * SIDE);
        l.p[i] = power_of_2(vf_load(b->s + at) * b->scale - vf_load(b->lse + i * SIDE));
        if (dropout)
            d = _mm512_mask3_fmadd_ps(x, vf_all(b->keep), d, (__mmask16)(kept >> 16 * i));
        else
            d += x;
        l.ds[i] = l.p[i] * d;
    }
    return l;
}

/* edge: not every query sees every key. */
INLINE void gradients(const struct score_block *b, const bool edge, const bool dropout)
{
    for (int k = 0; k < DEEP; k += 2) {
        __m512i ds[2];
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            int line = k + i;
            uint32_t kept = ~0u, seen = ~0u;
            if (dropout) memcpy(&kept, b->kept + line * b->kept_stride, sizeof kept);
            if (edge) seen = line >= b->keys ? 0 : b->diagonal ? ~0u << line : ~0u;
            struct line l = one_line(b, line, dropout, kept);
            __m512i p;
            if (edge || dropout)
                p = narrow_kept(seen & kept, l.p[0], l.p[1]);
            else
                p = narrow(l.p[0], l.p[1]);
            ds[i] = edge ? narrow_kept(seen, l.ds[0], l.ds[1]) : narrow(l.ds[0], l.ds[1]);
            int64_t at = line / SIDE * b->p_down + line % SIDE * 64;
            _mm512_store_si512(b->p + at, p);
            _mm512_store_si512(b->ds + at, ds[i]);
        }
        _mm512_store_si512(b->woven + k / 2 * 64, _mm512_unpacklo_epi16(ds[0], ds[1]));
        _mm512_store_si512(b->woven + TILE_BYTES + k / 2 * 64, _mm512_unpackhi_epi16(ds[0], ds[1]));
    }
}

void VEC(score_gradients)(const struct score_block *b)
{
    bool edge = b->diagonal || b->keys < DEEP;
    if (edge && b->kept)
        gradients(b, true, true);
    else if (edge)
        gradients(b, true, false);
    else if (b->kept)
        gradients(b, false, true);
    else
        gradients(b, false, false);
}
