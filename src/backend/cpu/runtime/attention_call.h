/* attention_call.h - what every attention kernel of the CPU reads off its call: shapes, where a head
 * lies, and for how many threads there is scratch. */
#ifndef BACKEND_CPU_RUNTIME_ATTENTION_CALL_H
#define BACKEND_CPU_RUNTIME_ATTENTION_CALL_H

#include "backend/kernel.h"

/* Shapes of a call, from the type of packed q, k, v (B,T,row): C = H D, row = C + 2 KV D. */
struct heads {
    int64_t B, T, C, H, D;
    int64_t KV, group, row; /* heads of keys and of values, heads of queries for each of them */
    float scale;            /* of the scores: 1/sqrt(D) */
    bool causal;
    struct dropout drop;
};
struct heads heads_of(const struct type *qkv, const union attr *attr);

/* Element of packed q, k, v at which row `row` of part 0, 1, 2 (q, k, v) begins that query head bh = b*H+h
 * reads; rows are s->row apart. */
static inline int64_t heads_part_at(const struct heads *s, int part, int64_t bh, int64_t row)
{
    int64_t head = bh % s->H;
    if (part) head = s->H + (part - 1) * s->KV + head / s->group;
    return (bh / s->H * s->T + row) * s->row + head * s->D;
}
/* The same of y or dy, (B,T,C), whose rows are C apart. */
static inline int64_t heads_row_at(const struct heads *s, int64_t bh, int64_t row)
{
    return (bh / s->H * s->T + row) * s->C + bh % s->H * s->D;
}

/* `prepare` of such kernels: keeps the number of threads that a call was planned for, because its scratch
 * is one part for each. A later run takes no more than that. */
enum status attention_prepare(const struct kernel *k, struct kernel_call *c);
int attention_threads(const struct kernel_call *c);

/* How the threads share the items of a loop with schedule(runtime), which go through so many whole heads in
 * order; 0: the items are no heads. Equal shares of neighbouring heads where that is balanced: a thread
 * then works on the rows that it worked on in the kernels before and after, which lie in its cache (in
 * small models half of attention's time); else one by one, to whoever is free. */
void attention_share(int64_t heads, int threads);

#endif
