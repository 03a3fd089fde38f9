/* heads.cuh - addresses of q, k and v of a head in the packed input (batch, tokens, 3, heads, D)
 * and of its output in (batch, tokens, heads, D). `head` counts the heads of all sequences. */
#pragma once
#include "device.cuh"

constexpr int D = 64;
constexpr bool CAUSAL = FORM == 0; /* a query attends only to keys up to its own position */

/* The number of keys that query i attends to: keys 0 ... n - 1. */
DEVICE i64 keys_of(i64 i, i64 tokens)
{
    return CAUSAL ? i + 1 : tokens;
}
/* The number of keys that any of `queries` queries from i0 on attends to. */
DEVICE i64 keys_of_all(i64 i0, i64 queries, i64 tokens)
{
    return CAUSAL && i0 + queries < tokens ? i0 + queries : tokens;
}

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
