#include "check/check.h"

#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/arena.h"
#include "base/heap.h"
#include "check/cases.h"
#include "check/check_packed.h"
#include "check/reference.h"
#include "graph/graph.h"

#include <math.h>
#include <string.h>

enum { GUARD_BYTES = 64, POISON = 0xff }; /* all bits set is a NaN in every float type */

/* One kernel row on one case; host copies of the outputs are doubles. */
struct trial {
    const struct backend *b;
    void *context;
    const struct kernel *kernel;
    const struct case_data *data;
    void *const *input;      /* the bytes of the inputs, on the host */
    enum dtype dtype;        /* the float type under test */
    struct kernel_call call; /* types, and the addresses of the current run */
    enum check_placement way;
    struct arena *arena;
    const char *problem;
};

double check_distance(const double *x, const double *y, int64_t n)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        if (x[i] == y[i] && isinf(y[i])) continue;
        if (!isfinite(x[i]) || !isfinite(y[i])) return INFINITY;
        difference += (x[i] - y[i]) * (x[i] - y[i]);
        norm += y[i] * y[i];
    }
    if (difference == 0) return 0;
    return norm == 0 ? INFINITY : sqrt(difference / norm);
}

/* The relative error by norm if n numbers are rounded to bfloat16. The relative change of a number
 * is taken as uniform up to 2^-8, so the error is 2^-8 / sqrt(3), or more if a few numbers dominate
 * the norm. */
static double bf16_rounding(int64_t n)
{
    return ldexp(sqrt(fmin(1, 1.0 / 3 + 1 / sqrt((double)n))), -8);
}

/* The allowed distance of an output from the reference, by norm. Inputs are exact in their types
 * and arithmetic is at least fp32, so the default covers a few fp32 roundings, another order of
 * summation, and one rounding to the type of the output. */
static double tolerance_of(const struct op_case *c, enum dtype dtype, const struct type *type)
{
    if (c->tolerance[dtype] > 0) return c->tolerance[dtype];
    return type->dtype == DT_BF16  ? bf16_rounding(type_elements(type))
           : type->dtype == DT_F64 ? 1e-13
                                   : 2e-6;
}

/* The input whose memory output `out` overwrites; -1 if the output has separate memory. */
static int overwritten_input(const struct trial *t, int out)
{
    if (out < op_writes(t->kernel->op)) return out;
    if (out == 0 && t->way == CHECK_IN_PLACE) return 0;
    if (out == 0 && t->way == CHECK_IN_PLACE_1) return 1;
    return -1;
}

static bool is_overwritten(const struct trial *t, int in)
{
    for (int i = 0; i < t->call.n_out; i++)
        if (overwritten_input(t, i) == in) return true;
    return false;
}

static bool way_is_allowed(const struct trial *t)
{
    static const unsigned flag[CHECK_WAYS] = {0, OP_INPLACE, OP_INPLACE_1};
    if (t->way == CHECK_APART) return true;
    const struct type *in = &t->call.in_type[t->way == CHECK_IN_PLACE ? 0 : 1];
    return op_def(t->kernel->op)->flags & flag[t->way] && type_same(in, &t->call.out_type[0]);
}

/* A buffer with at least `bytes` bytes of poison; all calls share the buffer. */
static const void *poison_of(int64_t bytes)
{
    static char *poison;
    static int64_t capacity;
    if (bytes > capacity) {
        poison = heap_resize(poison, bytes);
        memset(poison, POISON, (size_t)bytes);
        capacity = bytes;
    }
    return poison;
}

/* Allocates `size` bytes of device memory filled with poison, followed by a guard. */
static enum status alloc_poisoned(struct trial *t, int64_t size, void **ret_mem)
{
    const void *poison = poison_of(size + GUARD_BYTES);
    TRY(t->b->memory.alloc(t->context, size + GUARD_BYTES, ret_mem));
    return t->b->memory.upload(t->context, *ret_mem, poison, size + GUARD_BYTES);
}

static enum status place_inputs(struct trial *t)
{
    for (int i = 0; i < t->call.n_in; i++) {
        const struct type *type = &t->call.in_type[i];
        TRY(alloc_poisoned(t, type_bytes(type), &t->call.in[i]));
        TRY(t->b->memory.upload(t->context, t->call.in[i], t->input[i], type_bytes(type)));
    }
    return ST_OK;
}

static enum status place_outputs(struct trial *t)
{
    for (int i = 0; i < t->call.n_out; i++) {
        int in = overwritten_input(t, i);
        if (in >= 0)
            t->call.out[i] = t->call.in[in];
        else
            TRY(alloc_poisoned(t, type_bytes(&t->call.out_type[i]), &t->call.out[i]));
    }
    if (t->kernel->scratch_bytes)
        TRY(alloc_poisoned(t, t->kernel->scratch_bytes(t->kernel, &t->call), &t->call.scratch));
    return ST_OK;
}

static void free_all(struct trial *t)
{
    for (int i = 0; i < t->call.n_out; i++)
        if (t->call.out[i] && overwritten_input(t, i) < 0)
            t->b->memory.free(t->context, t->call.out[i]);
    for (int i = 0; i < t->call.n_in; i++)
        if (t->call.in[i]) t->b->memory.free(t->context, t->call.in[i]);
    if (t->call.scratch) t->b->memory.free(t->context, t->call.scratch);
    memset(t->call.in, 0, sizeof t->call.in);
    memset(t->call.out, 0, sizeof t->call.out);
    t->call.scratch = NULL;
}

/* Downloads a tensor; sets the problem if its guard was overwritten. */
static enum status fetch(struct trial *t, const void *mem, const struct type *type,
                         void **ret_bytes)
{
    int64_t size = type_bytes(type);
    unsigned char *bytes = arena_alloc(t->arena, size + GUARD_BYTES);
    TRY(t->b->memory.download(t->context, bytes, mem, size + GUARD_BYTES));
    for (int i = 0; i < GUARD_BYTES; i++)
        if (bytes[size + i] != POISON) t->problem = "writes past the end of a tensor";
    *ret_bytes = bytes;
    return ST_OK;
}

static enum status check_inputs(struct trial *t)
{
    for (int i = 0; i < t->call.n_in; i++) {
        const struct type *type = &t->call.in_type[i];
        if (is_overwritten(t, i)) continue;
        void *after;
        TRY(fetch(t, t->call.in[i], type, &after));
        if (memcmp(after, t->input[i], (size_t)type_bytes(type)) != 0)
            t->problem = "changes an input";
    }
    return ST_OK;
}

/* Runs the row once with fresh memory; ret_out receives the bytes of the outputs. */
static enum status run_once(struct trial *t, void **ret_out)
{
    enum status st;
    TRY_OUT(st, place_inputs(t));
    TRY_OUT(st, place_outputs(t));
    if (t->kernel->run(&t->call) != ST_OK) {
        t->problem = arena_strdup(t->arena, fail_message());
        goto out;
    }
    TRY_OUT(st, t->b->stream.sync(t->context));
    for (int i = 0; i < t->call.n_out; i++)
        TRY_OUT(st, fetch(t, t->call.out[i], &t->call.out_type[i], &ret_out[i]));
    TRY_OUT(st, check_inputs(t));
out:
    free_all(t);
    return st;
}

/* Runs the row twice. The error in the result is that of the worst output of the first run. */
static enum status run_trial(struct trial *t, double *const *expected, struct check_result *r)
{
    void *out[MAX_OUT], *repeated[MAX_OUT];
    TRY(run_once(t, out));
    if (!t->problem) TRY(run_once(t, repeated));
    for (int i = 0; !t->problem && i < t->call.n_out; i++) {
        const struct type *type = &t->call.out_type[i];
        int64_t n = type_elements(type);
        double *x = ARENA_NEW(t->arena, double, n);
        TRY(reference_convert(x, DT_F64, out[i], type->dtype, n));
        double error = check_distance(x, expected[i], n),
               tolerance = tolerance_of(t->data->c, t->dtype, type);
        if (i == 0 || error / tolerance > r->error / r->tolerance)
            r->error = error, r->tolerance = tolerance;
        if (memcmp(out[i], repeated[i], (size_t)type_bytes(type)) != 0)
            t->problem = "is not bit-identical in a second run";
    }
    return ST_OK;
}

/* Computes the outputs of the case with the reference kernel in double precision. */
static enum status expect(const struct case_data *data, struct arena *a, double **ret_out)
{
    struct node node;
    struct kernel_call call = {.attr = &node.attr};
    TRY(case_node(data->c, DT_F64, &node, call.in_type, call.out_type));
    call.n_in = node.n_in;
    call.n_out = node.n_out;
    for (int i = 0; i < call.n_in; i++) TRY(case_copy(data, i, DT_F64, a, &call.in[i]));
    for (int i = 0; i < call.n_out; i++) {
        bool written = i < op_writes(node.op);
        if (!written) call.out_type[i].dtype = DT_F64; /* also of CAST: the exact result */
        call.out[i] = written ? call.in[i] : arena_alloc(a, type_bytes(&call.out_type[i]));
    }
    TRY(reference_run(node.op, &call, a));
    for (int i = 0; i < call.n_out; i++) {
        int64_t n = type_elements(&call.out_type[i]);
        ret_out[i] = ARENA_NEW(a, double, n);
        TRY(reference_convert(ret_out[i], DT_F64, call.out[i], call.out_type[i].dtype, n));
    }
    return ST_OK;
}

static enum status check_row(struct trial *t, double *const *expected, check_fn report, void *user)
{
    for (t->way = CHECK_APART; t->way < CHECK_WAYS; t->way++) {
        if (!way_is_allowed(t)) continue;
        struct check_result r = {t->data->c, t->kernel, t->dtype, t->way, 0, 1, NULL};
        t->problem = NULL;
        TRY(run_trial(t, expected, &r));
        if (!t->problem && r.error > r.tolerance) t->problem = "is far from the reference";
        r.problem = t->problem;
        report(user, &r);
    }
    return ST_OK;
}

/* Like case_call, but also false if the backend has no kernel for the call. */
static bool call_of_case(const struct target *target, void *context, int i, enum dtype dtype,
                         struct node *node, struct kernel_call *ret)
{
    if (!case_call(case_at(i), dtype, node, ret)) return false;
    ret->context = context;
    ret->target = target;
    return target->backend->kernels.find((int)node->op, ret, 0);
}

struct request {
    const struct target *target;
    void *context;
    const struct check_scope *scope;
    check_fn report;
    void *user;
};

static bool is_in_list(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ',') && (at[n] == ',' || !at[n])) return true;
    return false;
}

static bool is_selected(const struct request *req, const struct kernel *k, const struct node *node,
                        const struct kernel_call *call)
{
    const struct check_scope *s = req->scope;
    if (s->variant && strcmp(k->variant, s->variant)) return false;
    return !s->small || !is_in_list(s->small, k->variant) ||
           op_def(node->op)->cost(node, call->in_type, call->out_type).flops <= CHECK_SMALL_FLOPS;
}

/* True if at least one row must run on the case. Otherwise the caller need not compute the
 * reference. */
static bool has_row(const struct request *req, int i, enum dtype dtype)
{
    struct node node;
    struct kernel_call call;
    const struct kernel *k;
    if (!call_of_case(req->target, req->context, i, dtype, &node, &call)) return false;
    for (int n = 0; (k = req->target->backend->kernels.find((int)node.op, &call, n)); n++)
        if (is_selected(req, k, &node, &call)) return true;
    return false;
}

static enum status check_case(const struct request *req, int i, const struct case_data *exact,
                              enum dtype dtype, struct arena *a)
{
    const struct backend *b = req->target->backend;
    struct node node;
    struct case_data data;
    double *expected[MAX_OUT];
    void *input[MAX_IN];
    struct kernel_call call;
    if (!call_of_case(req->target, req->context, i, dtype, &node, &call)) return ST_OK;
    TRY(case_round(exact, dtype, a, &data));
    TRY(expect(&data, a, expected));
    for (int k = 0; k < call.n_in; k++) TRY(case_copy(&data, k, dtype, a, &input[k]));
    const struct kernel *k;
    for (int n = 0; (k = b->kernels.find((int)node.op, &call, n)); n++) {
        if (!is_selected(req, k, &node, &call)) continue;
        struct trial t = {b, req->context, k, &data, input, dtype, call, CHECK_APART, a, NULL};
        enum status st = k->prepare ? k->prepare(k, &t.call) : ST_OK;
        if (st == ST_UNSUPPORTED) continue; /* a library has no algorithm for this call */
        TRY(st);
        st = check_row(&t, expected, req->report, req->user);
        if (k->release) k->release(&t.call);
        TRY(st);
    }
    if (req->scope->variant) return ST_OK;
    double tolerance = tolerance_of(data.c, dtype, &call.out_type[0]);
    return check_packed(req->target, req->context, &data, dtype, expected[0], tolerance,
                        req->report, req->user, a);
}

static const enum dtype dtypes[] = {DT_F64, DT_F32, DT_BF16};

static bool is_of_op(const struct op_case *c, enum op op)
{
    return (op == OP_COUNT || op == OP_PACK || c->op == op) && !(op_def(c->op)->flags & OP_VIEW);
}

/* Requests the kernels of all rows, so that they are compiled together before the first run. */
static enum status request_kernels(const struct request *req)
{
    const struct backend *b = req->target->backend;
    const struct kernel *k;
    for (int i = 0; case_at(i); i++)
        for (int d = 0; d < COUNT_OF(dtypes) && is_of_op(case_at(i), req->scope->op); d++) {
            struct node node;
            struct kernel_call call;
            if (!call_of_case(req->target, req->context, i, dtypes[d], &node, &call)) continue;
            for (int n = 0; (k = b->kernels.find((int)node.op, &call, n)); n++) {
                if (!is_selected(req, k, &node, &call)) continue;
                enum status st = k->prepare ? k->prepare(k, &call) : ST_OK;
                if (st == ST_UNSUPPORTED) continue;
                TRY(st);
                if (k->release) k->release(&call);
            }
        }
    return ST_OK;
}

/* Checks one case, with the same random inputs, in every float type in which a row must run. */
static enum status check_dtypes(const struct request *req, int i, struct arena *inputs)
{
    struct case_data exact = {0};
    for (int d = 0; d < COUNT_OF(dtypes); d++) {
        if (!has_row(req, i, dtypes[d])) continue;
        if (!exact.c) TRY(case_fill(i, inputs, &exact));
        struct arena arena = {0};
        enum status st = check_case(req, i, &exact, dtypes[d], &arena);
        arena_release(&arena);
        TRY(st);
    }
    return ST_OK;
}

enum status check_kernels(const struct target *target, void *context,
                          const struct check_scope *scope, check_fn report, void *user)
{
    const struct request req = {target, context, scope, report, user};
    const struct op_case *c;
    if (!target->backend->host_memory) TRY(request_kernels(&req));
    for (int i = 0; (c = case_at(i)); i++) {
        if (!is_of_op(c, scope->op)) continue;
        struct arena inputs = {0};
        enum status st = check_dtypes(&req, i, &inputs);
        arena_release(&inputs);
        if (st != ST_OK) return fail_in(st, "%s, %s", op_def(c->op)->name, c->what);
    }
    return ST_OK;
}
