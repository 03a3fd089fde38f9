#include "check/check_packed.h"

#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/arena.h"
#include "check/cases.h"
#include "check/reference.h"
#include "graph/graph.h"

#include <math.h>

struct pair {
    const struct backend *b;
    const struct target *target;
    void *context;
    union attr pack_attr, matmul_attr;
    struct kernel_call pack, matmul;
    const struct kernel *pack_kernel, *matmul_kernel;
};

/* Fills the calls of PACK and the matmul; false if nothing can be packed or a kernel is missing. */
static bool pair_init(struct pair *p, const struct case_data *data, enum dtype dtype)
{
    struct node node;
    if ((data->c->op != OP_MATMUL && data->c->op != OP_LINEAR) ||
        case_node(data->c, dtype, &node, p->matmul.in_type, p->matmul.out_type) != ST_OK)
        return false;
    struct type *b = &p->matmul.in_type[1];
    bool linear = node.op == OP_LINEAR, tb = linear ? node.attr.linear.tb : node.attr.matmul.tb;
    if (b->rank != 2 || (!linear && node.attr.matmul.ta)) return false;
    p->matmul_attr = node.attr;
    int64_t N = b->dim[!tb];
    if (linear)
        p->matmul_attr.linear.packed = N;
    else
        p->matmul_attr.matmul.packed = N;
    p->pack_attr.pack.tb = tb;
    p->pack_attr.pack.rows = type_rows(&p->matmul.in_type[0]);
    p->pack = (struct kernel_call){
        .attr = &p->pack_attr, .n_in = 1, .n_out = 1, .in_type = {*b}, .context = p->context};
    p->pack.target = p->matmul.target = p->target;
    *b = p->pack.out_type[0] = type_1d(b->dtype, packed_elements(b->dim[tb], N));
    p->matmul.attr = &p->matmul_attr;
    p->matmul.numerics = node.numerics;
    p->matmul.n_in = node.n_in;
    p->matmul.n_out = node.n_out;
    p->matmul.context = p->context;
    p->pack_kernel = p->b->kernels.find(OP_PACK, &p->pack, 0);
    p->matmul_kernel = p->b->kernels.find((int)node.op, &p->matmul, 0);
    return p->pack_kernel && p->matmul_kernel;
}

static enum status upload_input(struct pair *p, const struct case_data *data, int i,
                                enum dtype dtype, struct arena *a, void **ret_mem)
{
    void *host;
    struct type t = case_type(data->c, i, dtype);
    int64_t size = type_bytes(&t);
    TRY(case_copy(data, i, dtype, a, &host));
    TRY(p->b->memory.alloc(p->context, size, ret_mem));
    return p->b->memory.upload(p->context, *ret_mem, host, size);
}

static enum status place(struct pair *p, const struct case_data *data, enum dtype dtype,
                         struct arena *a)
{
    struct kernel_call *calls[] = {&p->pack, &p->matmul};
    const struct kernel *kernels[] = {p->pack_kernel, p->matmul_kernel};
    for (int i = 0; i < p->matmul.n_in; i++)
        TRY(upload_input(p, data, i, dtype, a, i == 1 ? &p->pack.in[0] : &p->matmul.in[i]));
    for (int k = 0; k < 2; k++) {
        TRY(p->b->memory.alloc(p->context, type_bytes(&calls[k]->out_type[0]), &calls[k]->out[0]));
        if (!kernels[k]->scratch_bytes) continue;
        TRY(p->b->memory.alloc(p->context, kernels[k]->scratch_bytes(kernels[k], calls[k]),
                               &calls[k]->scratch));
    }
    p->matmul.in[1] = p->pack.out[0];
    return ST_OK;
}

static void free_all(struct pair *p)
{
    void *mem[] = {p->pack.in[0],   p->pack.out[0],   p->pack.scratch,  p->matmul.in[0],
                   p->matmul.in[2], p->matmul.out[0], p->matmul.scratch};
    for (int i = 0; i < COUNT_OF(mem); i++)
        if (mem[i]) p->b->memory.free(p->context, mem[i]);
}

static enum status run_pair(struct pair *p, const double *expected, struct arena *a,
                            double *ret_error)
{
    const struct type *type = &p->matmul.out_type[0];
    int64_t n = type_elements(type);
    void *out = arena_alloc(a, type_bytes(type));
    double *x = ARENA_NEW(a, double, n);
    TRY(p->pack_kernel->run(&p->pack));
    TRY(p->matmul_kernel->run(&p->matmul));
    TRY(p->b->stream.sync(p->context));
    TRY(p->b->memory.download(p->context, out, p->matmul.out[0], type_bytes(type)));
    TRY(reference_convert(x, DT_F64, out, type->dtype, n));
    *ret_error = check_distance(x, expected, n);
    return ST_OK;
}

enum status check_packed(const struct target *target, void *context, const struct case_data *data,
                         enum dtype dtype, const double *expected, double tolerance,
                         check_fn report, void *user, struct arena *a)
{
    struct pair p = {.b = target->backend, .target = target, .context = context};
    if (!pair_init(&p, data, dtype)) return ST_OK;
    struct op_case *pack_case = ARENA_NEW(a, struct op_case, 1);
    *pack_case = *data->c;
    pack_case->op = OP_PACK;
    struct check_result r = {pack_case, p.pack_kernel, dtype, CHECK_APART,
                             INFINITY,  tolerance,     NULL};
    enum status st = place(&p, data, dtype, a);
    if (st == ST_OK && p.pack_kernel->prepare) st = p.pack_kernel->prepare(p.pack_kernel, &p.pack);
    if (st == ST_OK && p.matmul_kernel->prepare)
        st = p.matmul_kernel->prepare(p.matmul_kernel, &p.matmul);
    if (st == ST_OK) st = run_pair(&p, expected, a, &r.error);
    if (p.pack_kernel->release) p.pack_kernel->release(&p.pack);
    if (p.matmul_kernel->release) p.matmul_kernel->release(&p.matmul);
    free_all(&p);
    TRY(st);
    if (!(r.error <= tolerance))
        r.problem = "is far from the reference, together with the matmul that reads its result";
    report(user, &r);
    return ST_OK;
}
