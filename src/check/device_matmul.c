#include "check/device_matmul.h"

#include "base/arena.h"
#include "check/reference.h"

void device_matmul_find(struct device_matmul *m, const struct backend *backend, void *context,
                        const struct target *target, const struct device_matmul_types *types,
                        const int64_t size[3])
{
    bool eight = dtype_is_float8(types->a);
    int64_t M = size[0], N = size[1], K = size[2];
    *m = (struct device_matmul){.backend = backend, .context = context};
    m->attr.matmul.fast = types->fast;
    m->op = eight ? OP_MATMUL_SCALED : OP_MATMUL;
    struct kernel_call *c = &m->call;
    *c = (struct kernel_call){.attr = &m->attr, .n_in = eight ? 4 : 2, .n_out = 1};
    c->context = context;
    c->target = target;
    c->numerics.tf32 = types->tf32;
    c->in_type[0] = type_2d(types->a, M, K);
    c->in_type[1] = eight ? type_2d(types->b, N, K) : type_2d(types->b, K, N);
    if (eight) c->in_type[2] = c->in_type[3] = type_1d(DT_F32, 1);
    c->out_type[0] = type_2d(types->c, M, N);
    m->kernel = backend->kernels.find((int)m->op, c, 0);
}

static enum status upload(struct device_matmul *m, int input, const void *from)
{
    int64_t bytes = type_bytes(&m->call.in_type[input]);
    TRY(m->backend->memory.alloc(m->context, bytes, &m->call.in[input]));
    return m->backend->memory.upload(m->context, m->call.in[input], from, bytes);
}

enum status device_matmul_open(struct device_matmul *m, const void *a, const void *b,
                               const float scale[2])
{
    const struct kernel *k = m->kernel;
    struct kernel_call *c = &m->call;
    TRY(upload(m, 0, a));
    TRY(upload(m, 1, b));
    for (int i = 2; i < c->n_in; i++) TRY(upload(m, i, &scale[i - 2]));
    TRY(m->backend->memory.alloc(m->context, type_bytes(&c->out_type[0]), &c->out[0]));
    int64_t scratch = k->scratch_bytes ? k->scratch_bytes(k, c) : 0;
    if (scratch) TRY(m->backend->memory.alloc(m->context, scratch, &c->scratch));
    TRY(m->backend->stream.sync(m->context)); /* so that the caller may free the operands */
    return k->prepare ? k->prepare(k, c) : ST_OK;
}

enum status device_matmul_start(const struct device_matmul *m)
{
    return m->kernel->run(&m->call);
}

enum status device_matmul_result(const struct device_matmul *m, float *ret)
{
    const struct type *type = &m->call.out_type[0];
    struct arena a = {0};
    void *c = arena_alloc(&a, type_bytes(type));
    enum status st = m->backend->stream.sync(m->context);
    if (st == ST_OK)
        st = m->backend->memory.download(m->context, c, m->call.out[0], type_bytes(type));
    if (st == ST_OK) st = m->backend->stream.sync(m->context);
    if (st == ST_OK) st = reference_convert(ret, DT_F32, c, type->dtype, type_elements(type));
    arena_release(&a);
    return st;
}

void device_matmul_close(struct device_matmul *m)
{
    struct kernel_call *c = &m->call;
    void *all[] = {c->in[0], c->in[1], c->in[2], c->in[3], c->out[0], c->scratch};
    if (m->kernel && m->kernel->release) m->kernel->release(c);
    for (int i = 0; i < COUNT_OF(all); i++)
        if (all[i]) m->backend->memory.free(m->context, all[i]);
    *m = (struct device_matmul){0};
}
