/* heads.cuh - where q, k and v of a head are in the packed input (batch, tokens, 3, heads, D), and
 * its output in (batch, tokens, heads, D). `head` counts the heads of all sequences. */
#pragma once
#include "device.cuh"

constexpr int D = 64;

/* q, k or v (which = 0, 1, 2) of token t of a head; the next token is 3 * heads * D further. */
DEVICE const ELEMENT *token(const ELEMENT *x, int which, int head, i64 t, i64 heads, i64 tokens)
{
    return x + ((((i64)head / heads * tokens + t) * 3 + which) * heads + head % heads) * D;
}
/* The output of token t; the next token is heads * D further. */
DEVICE ELEMENT *result(ELEMENT *y, int head, i64 t, i64 heads, i64 tokens)
{
    return y + (((i64)head / heads * tokens + t) * heads + head % heads) * D;
}
