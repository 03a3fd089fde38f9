/* attention_call.h - for the attention kernels of the CPU: the shapes of a call, the offsets of a
 * head, the number of threads that have scratch, and how threads divide the work. */
#ifndef BACKEND_CPU_RUNTIME_ATTENTION_CALL_H
#define BACKEND_CPU_RUNTIME_ATTENTION_CALL_H

#include "backend/kernel.h"

/* Shapes of a call, from the type of packed q, k, v (B,T,row_size): C = H D,
 * row_size = C + 2 KV D. */
struct heads {
    int64_t B, T, C, H, D;
    int64_t KV;       /* heads of keys and of values */
    int64_t group;    /* query heads that share one key head */
    int64_t row_size; /* elements of one row of packed q, k, v */
    float scale;      /* of the scores */
    bool causal;
    struct dropout drop;
};
struct heads heads_of(const struct type *qkv, const union attr *attr);

/* Offset of row `row` of part 0 (q), 1 (k) or 2 (v) in packed q, k, v, for query head bh = b*H+h.
 * The rows of a head are s->row_size elements apart. */
static inline int64_t heads_part_at(const struct heads *s, int part, int64_t bh, int64_t row)
{
    int64_t head = bh % s->H;
    if (part) head = s->H + (part - 1) * s->KV + head / s->group;
    return (bh / s->H * s->T + row) * s->row_size + head * s->D;
}
/* Offset of row `row` of head bh in y or dy, (B,T,C), whose rows are C elements apart. */
static inline int64_t heads_row_at(const struct heads *s, int64_t bh, int64_t row)
{
    return (bh / s->H * s->T + row) * s->C + bh % s->H * s->D;
}

/* `prepare` of the attention kernels: stores the number of threads at planning time, because each
 * of these threads has its own part of the scratch. */
enum status attention_prepare(const struct kernel *k, struct kernel_call *c);
/* The number of threads that run the call: at most the number at planning time. */
int attention_threads(const struct kernel_call *c);

/* Sets the schedule of the next OpenMP loop with schedule(runtime). `heads`: the number of heads
 * through which the loop goes in order; 0: threads do not take whole heads. If equal shares of
 * heads balance the load, each thread gets neighboring heads, whose rows are in its cache, because
 * the kernels before and after divide the rows alike (in small models this halves the time).
 * Otherwise each item goes to the next free thread. */
void attention_schedule(int64_t heads, int threads);

/* For the backward pass: true if each thread should take whole groups of heads (5 matmuls for each
 * block of scores), false if threads should divide the heads into blocks (7 matmuls). */
bool attention_whole_groups(int64_t groups, int64_t threads);

#endif
