/* ref.h - what the reference kernels share.
 *
 * Most reference kernels are written once, in headers, and compiled twice, by ref_f32.c and
 * ref_f64.c: `real` is the type of every tensor except the integer ones. cast.c, chain.c and
 * float8.c serve all types at once. The reference kernels define what an operator computes, in
 * plain loops. Arithmetic and sums are in double and in index order, so results repeat bit for bit;
 * the only rounding to `real` is at the store. Where an output may share its memory with an input,
 * each element is read before it is written. */
#ifndef BACKEND_CPU_REF_REF_H
#define BACKEND_CPU_REF_REF_H

#include "backend/kernel.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

#ifndef REAL /* a header compiled alone is the float version */
#define REAL       float
#define REAL_DTYPE DT_F32
#define REF(name)  name##_f32
#endif

typedef REAL real;

static inline bool fits_real(const struct kernel_call *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (c->in_type[i].dtype != REAL_DTYPE) return false;
    for (int i = 0; i < c->n_out; i++)
        if (c->out_type[i].dtype != REAL_DTYPE) return false;
    return true;
}

/* A kernel row of real tensors. More members, such as the size of scratch, come last. */
#define ROW(op_name, run_fn, ...)                                                           \
    {                                                                                       \
        .op = OP_##op_name, .variant = "ref", .fits = fits_real, .run = run_fn, __VA_ARGS__ \
    }
/* A kernel row whose tensors are not all real. in_letters and out_letters are as in types_are
 * (kernel.h); the letter 'a' means real. */
#define ROW_TYPES(op_name, in_letters, out_letters, run_fn, ...)                    \
    {                                                                               \
        .op = OP_##op_name, .variant = "ref", .in = in_letters, .out = out_letters, \
        .act = REAL_DTYPE, .run = run_fn, __VA_ARGS__                               \
    }

/* The factor of dropout for element i of a flattened tensor: 0, or the scale of a kept element. */
static inline double keep_pointwise(const struct dropout *d, const int32_t *step, int64_t i)
{
    if (d->threshold == 0) return 1.0;
    /* One call gives 16 bytes, one for each of 16 elements. */
    struct rng_words r = dropout_pointwise(d->seed, d->site, (uint32_t)*step, (uint64_t)(i / 16));
    int byte = (int)(r.w[i % 16 / 4] >> (8 * (i % 4)) & 0xff);
    return byte >= d->threshold ? (double)dropout_scale(d->threshold) : 0.0;
}

/* The same for element (q,k) of attention matrix bh = b*H + h. */
static inline double keep_attention(const struct dropout *d, const int32_t *step, int64_t bh,
                                    int64_t q, int64_t k)
{
    if (d->threshold == 0) return 1.0;
    int byte = dropout_attention_byte(d->seed, d->site, (uint32_t)*step, (uint32_t)bh, (uint32_t)q,
                                      (uint32_t)k);
    return byte >= d->threshold ? (double)dropout_scale(d->threshold) : 0.0;
}

/* The same for element i of a tensor of type t, for either pattern. */
static inline double keep_element(const struct dropout *d, const int32_t *step,
                                  const struct type *t, int64_t i)
{
    if (d->pattern == DROPOUT_POINTWISE) return keep_pointwise(d, step, i);
    int64_t columns = type_columns(t), rows = t->dim[t->rank - 2]; /* (B,H,T,T) */
    return keep_attention(d, step, i / columns / rows, i / columns % rows, i % columns);
}

/* Fails if an id lies outside its table. */
static inline enum status check_ids(const int32_t *ids, int64_t n, int64_t below)
{
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= below)
            return fail(ST_FORMAT,
                        "id %d at position %lld is not in 0 ... %lld; does the data set "
                        "use another vocabulary?",
                        (int)ids[i], (long long)i, (long long)below - 1);
    return ST_OK;
}

#endif
