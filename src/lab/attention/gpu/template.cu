// Attention with heads of 64 elements: y[i] is the sum of p[j] v[j] over all tokens j <= i (with
// --form=full, where FORM is 1: over all tokens), p = the softmax of q[i] . k[j] / 8. x is packed,
// (batch, tokens, 3, heads, 64): q, k and v of all heads side by side; y is (batch, tokens, heads,
// 64). A block has one query of one head.
//
// @blocks  tokens, batch * heads
// @threads 64
// @shared  4 * tokens
extern "C" __global__ void attention(ELEMENT *y, const ELEMENT *x, long long batch, long long heads,
                                     long long tokens)
{
    extern __shared__ float p[];
    __shared__ float most, sum;
    long long i = blockIdx.x, b = blockIdx.y / heads, h = blockIdx.y % heads,
              stride = 3 * heads * 64;
    long long n = FORM == 1 ? tokens : i + 1;
    const ELEMENT *q = x + b * tokens * stride + h * 64, *k = q + heads * 64, *v = k + heads * 64;
    for (long long j = threadIdx.x; j < n; j += 64) {
        p[j] = 0;
        for (int d = 0; d < 64; d++)
            p[j] += to_float(q[i * stride + d]) * to_float(k[j * stride + d]) / 8;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        most = p[0], sum = 0;
        for (long long j = 1; j < n; j++) most = fmaxf(most, p[j]);
        for (long long j = 0; j < n; j++) sum += p[j] = expf(p[j] - most);
    }
    __syncthreads();
    float out = 0;
    for (long long j = 0; j < n; j++) out += p[j] / sum * to_float(v[j * stride + threadIdx.x]);
    y[((b * tokens + i) * heads + h) * 64 + threadIdx.x] = to<ELEMENT>(out);
}
