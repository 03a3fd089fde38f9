#include "backend/cpu/runtime/attention_call.h"

#include <omp.h>

struct heads heads_of(const struct type *qkv, const union attr *attr)
{
    int64_t row = qkv->dim[2], H = attr->attention.heads, KV = attention_kv_heads(attr);
    int64_t D = row / (H + 2 * KV);
    struct heads s = {.B = qkv->dim[0], .T = qkv->dim[1], .C = H * D, .H = H, .D = D, .KV = KV};
    s.group = H / KV, s.row_size = row, s.scale = 1.0f / (float)attention_divisor(attr, D);
    s.causal = attr->attention.causal, s.drop = attr->attention.drop;
    return s;
}

enum status attention_prepare(const struct kernel *, struct kernel_call *c)
{
    c->state = (void *)(intptr_t)omp_get_max_threads();
    return ST_OK;
}

int attention_threads(const struct kernel_call *c)
{
    int planned = (int)(intptr_t)c->state, now = omp_get_max_threads();
    if (planned < 1) return 1;
    return planned < now ? planned : now;
}

void attention_schedule(int64_t heads, int threads)
{
    /* With this many heads for each thread, one head more or less does not matter. */
    enum { BALANCED = 8 };
    bool even = heads > 0 && (heads % threads == 0 || heads >= BALANCED * threads);
    omp_set_schedule(even ? omp_sched_static : omp_sched_dynamic, 0);
}

/* Compares the matmuls of the busiest thread, times `threads`: for each block of scores, 5 matmuls
 * with whole groups and 7 with divided heads. */
bool attention_whole_groups(int64_t groups, int64_t threads)
{
    return (groups + threads - 1) / threads * threads * 5 <= groups * 7;
}
