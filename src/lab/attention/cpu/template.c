// Attention with heads of 64 floats: y[i] is the sum of p[j] v[j] over all tokens j <= i (with
// --form=full, where FORM is 1: over all tokens), p = the softmax of q[i] . k[j] / 8. x is packed,
// (batch, tokens, 3, heads, 64): q, k and v of all heads side by side; y is (batch, tokens, heads,
// 64).
#include <math.h>
#include <stdlib.h>

void attention(float *y, const float *x, int64_t batch, int64_t heads, int64_t tokens, int threads)
{
    int64_t stride = 3 * heads * 64;
#pragma omp parallel for num_threads(threads)
    for (int64_t head = 0; head < batch * heads; head++) {
        const float *q = x + head / heads * tokens * stride + head % heads * 64;
        const float *k = q + heads * 64, *v = k + heads * 64;
        float *to = y + head / heads * tokens * heads * 64 + head % heads * 64;
        float *p = malloc((size_t)tokens * sizeof *p);
        for (int64_t i = 0; i < tokens; i++) {
            int64_t n = FORM == 1 ? tokens : i + 1;
            float most = -INFINITY, sum = 0;
            for (int64_t j = 0; j < n; j++) {
                p[j] = 0;
                for (int d = 0; d < 64; d++) p[j] += q[i * stride + d] * k[j * stride + d] / 8;
                most = p[j] > most ? p[j] : most;
            }
            for (int64_t j = 0; j < n; j++) sum += p[j] = expf(p[j] - most);
            for (int d = 0; d < 64; d++) to[i * heads * 64 + d] = 0;
            for (int64_t j = 0; j < n; j++)
                for (int d = 0; d < 64; d++)
                    to[i * heads * 64 + d] += p[j] / sum * v[j * stride + d];
        }
        free(p);
    }
}
