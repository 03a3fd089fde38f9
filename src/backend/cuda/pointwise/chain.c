/* CHAIN: one launch of a generated kernel (chain_text.c). Sizes, and values that differ between
 * layers, such as the site of a dropout, are arguments, so that layers share a compilation. */
#include "graph/chain.h"

#include "backend/cuda/cuda_kernels.h"
#include "backend/cuda/pointwise/chain_text.h"
#include <stdio.h>

enum { THREADS = 256, WARP = 32 }; /* as in elements.cuh */

static bool fits(const struct kernel_call *c)
{
    const struct chain *chain = c->attr->chain;
    enum dtype dtype[CHAIN_STEPS];
    chain_dtypes(chain, c->in_type, dtype);
    for (int i = 0; i < c->n_in; i++)
        if (c->in_type[i].dtype == DT_F64) return false;
    for (int k = 0; k < chain->steps; k++)
        if (dtype[k] == DT_F64) return false;
    return true;
}

/* The number of threads of a block: one warp is enough if one vector for each of its lanes covers
 * all elements. */
static int block_of(int64_t n, int vector)
{
    return n == 1 ? 1 : n <= (int64_t)WARP * vector ? WARP : THREADS;
}

/* Writes the name that chain_text.c gives a parameter, for example "in2". */
static const char *numbered(const char *word, int i, char ret[ARG_NAME])
{
    snprintf(ret, ARG_NAME, "%s%d", word, i);
    return ret;
}

static void chain(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct chain *chain = c->attr->chain;
    int64_t n = type_elements(&chain->shape), per_block = (int64_t)THREADS * chain_per_thread(c);
    struct cuda_launch *k =
        launch_add(l, "chain.cu", "chain", ceil_div(n, per_block), block_of(n, chain_vector(c)));
    char name[ARG_NAME];
    k->write = chain_write;
    for (int i = 0; i < c->n_in; i++) {
        const struct type *t = &c->in_type[i];
        bool per_row = type_broadcast(&chain->shape, t) == BROADCAST_ROW;
        arg_in(k, numbered("in", i, name), i);
        if (chain_has_period(c, i))
            arg_i32(k, numbered("period", i, name),
                    per_row ? type_columns(&chain->shape) : type_elements(t));
    }
    for (int i = 0; i < chain->steps; i++) {
        const struct dropout *d = &chain->step[i].attr.drop;
        if (chain->step[i].op != OP_DROPOUT) continue;
        arg_u32(k, numbered("seed", i, name), d->seed);
        arg_u32(k, numbered("site", i, name), d->site);
        arg_i32(k, numbered("threshold", i, name), d->threshold);
    }
    for (int i = 0; i < c->n_out; i++) arg_out(k, numbered("out", i, name), i);
    if (n > 1) arg_i64(k, "n", n);
}

const struct cuda_row chain_rows[] = {
    CUDA_ROW(CHAIN, "generated", NULL, NULL, fits, chain),
    CUDA_ROWS_END,
};
