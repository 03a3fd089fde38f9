/* Matrix products by cuBLASLt: f32, f32 rounded to TF32, bf16 with sums in f32, and 8 bits with a scale for each operand. */
#include "backend/cuda/product.h"

#include "backend/cuda/context.h"
#include "backend/cuda/cuda_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the library asks for at most, of its manual; one place in the arena serves all products. */
enum { ADA = 89, HOPPER = 90, WORKSPACE_HOPPER = 32 << 20, WORKSPACE = 8 << 20 };

static int64_t workspace_bytes(const struct kernel_call *c)
{
    return cuda_device_of(c)->arch >= HOPPER ? WORKSPACE_HOPPER : WORKSPACE;
}

/* What prepare makes. */
struct prepared {
    struct product product;
    struct product_parts parts;
    struct product_choice choice;
    int64_t workspace_bytes;
    struct product_copies copies;
    struct kernel_call before, after; /* launches, where there are copies */
};

/* The library has an algorithm for it; where there is no GPU to ask for, it is taken to have one. */
static bool has_algorithm(enum op op, const struct kernel_call *c)
{
    struct product p;
    if (!gemm_of(op, c, &p)) return false;
    if (product_is_scaled(&p) && cuda_device_of(c)->arch < ADA) return false;
    if (cuda_plans_only(c->context)) return true;
    p = product_even(&p);
    struct product_parts parts;
    cublasLtMatmulHeuristicResult_t first;
    if (!cublaslt_handle() || product_open(&parts, &p) != ST_OK) return false;
    int n = product_candidates(&parts, workspace_bytes(c), 1, &first);
    product_close(&parts);
    return n > 0;
}

static bool fits_matmul(const struct kernel_call *c)
{
    return has_algorithm(OP_MATMUL, c);
}

static bool fits_linear(const struct kernel_call *c)
{
    return has_algorithm(OP_LINEAR, c);
}

static bool fits_matmul_scaled(const struct kernel_call *c)
{
    return has_algorithm(OP_MATMUL_SCALED, c);
}

static bool fits_linear_gelu(const struct kernel_call *c)
{
    return has_algorithm(OP_LINEAR_GELU, c);
}

static bool fits_matmul_gelu_grad(const struct kernel_call *c)
{
    return has_algorithm(OP_MATMUL_GELU_GRAD, c);
}

static bool fits_matmul_sum(const struct kernel_call *c)
{
    return has_algorithm(OP_MATMUL_SUM, c);
}

/* The workspace starts at a multiple of more than scratch does. */
static int64_t scratch_bytes(const struct kernel *k, const struct kernel_call *c)
{
    return product_copies(k->op, c).bytes + workspace_bytes(c) + PRODUCT_WORKSPACE_ALIGN;
}

static void release(struct kernel_call *c)
{
    struct prepared *r = c->state;
    if (!r) return;
    if (r->before.state) cuda_release(&r->before);
    if (r->after.state) cuda_release(&r->after);
    product_close(&r->parts);
    free(r);
    c->state = NULL;
}

static enum status prepare_launches(const struct cuda_row *row, enum op op,
                                    const struct kernel_call *c, struct kernel_call *ret)
{
    while (row->kernel.run && row->kernel.op != op) row++;
    BUG_IF(!row->kernel.run, "no launches beside %s", op_def(op)->name);
    *ret = *c;
    ret->state = NULL;
    return cuda_prepare(&row->kernel, ret);
}

static enum status run_launches(struct kernel_call *launches, const struct kernel_call *c)
{
    memcpy(launches->in, c->in, sizeof c->in);
    memcpy(launches->out, c->out, sizeof c->out);
    launches->scratch = c->scratch;
    return cuda_run(launches);
}

static enum status prepare(const struct kernel *k, struct kernel_call *c)
{
    if (cuda_plans_only(c->context)) return ST_OK;
    struct prepared *r = calloc(1, sizeof *r);
    BUG_IF(!r, "no host memory");
    c->state = r;
    r->workspace_bytes = workspace_bytes(c);
    bool fine = gemm_of(k->op, c, &r->product);
    BUG_IF(!fine, "a product that does not fit");
    enum status st = ST_OK;
    r->product = product_even(&r->product);
    r->copies = product_copies(k->op, c);
    TRY_OUT(st, product_open(&r->parts, &r->product));
    TRY_OUT(st, product_choose(&r->product, &r->parts, r->workspace_bytes, c->context, &r->choice));
    if (r->copies.bias >= 0 || r->copies.a >= 0 || r->copies.b >= 0)
        TRY_OUT(st, prepare_launches(product_before, k->op, c, &r->before));
    if (r->copies.out >= 0) TRY_OUT(st, prepare_launches(product_after, k->op, c, &r->after));
out:
    if (st != ST_OK) release(c);
    return st;
}

static void *workspace_of(const struct kernel_call *c, int64_t before)
{
    uintptr_t at = (uintptr_t)c->scratch + (uintptr_t)before + PRODUCT_WORKSPACE_ALIGN - 1;
    return (void *)(at / PRODUCT_WORKSPACE_ALIGN * PRODUCT_WORKSPACE_ALIGN);
}

static void *copy_of(const struct kernel_call *c, int64_t offset, void *itself)
{
    return offset == COPY_NONE ? itself : (char *)c->scratch + offset;
}

static enum status run(const struct kernel_call *c)
{
    struct prepared *r = c->state;
    enum product_end end = r->product.end;
    struct product_memory m = {.a = copy_of(c, r->copies.a, c->in[0]),
                               .b = copy_of(c, r->copies.b, c->in[1]),
                               .out = copy_of(c, r->copies.out, c->out[0]),
                               .workspace = workspace_of(c, r->copies.bytes),
                               .workspace_bytes = r->workspace_bytes};
    void *piece = cuda_cleared_piece(c->context, r->choice.workspace_bytes);
    if (piece) m.workspace = piece, m.workspace_bytes = r->choice.workspace_bytes;
    bool scaled = product_is_scaled(&r->product);
    if (scaled) m.scale_a = c->in[2], m.scale_b = c->in[3];
    if (r->product.bias) m.bias = scaled ? c->in[4] : copy_of(c, r->copies.bias, c->in[2]);
    if (end == END_SUM) m.bias = c->out[1];
    if (end == END_GELU_KEEP) m.beside = c->out[1];
    if (end == END_GELU_GRAD) m.beside = c->in[2];
    if (r->before.state) TRY(run_launches(&r->before, c));
    cuda_count_launch(c->context, "of cuBLASLt");
    TRY(product_run(&r->parts, &r->choice.algorithm, &m, cuda_stream(c->context)));
    return r->after.state ? run_launches(&r->after, c) : ST_OK;
}

const struct kernel product_rows[] = {
    {OP_MATMUL, "cublaslt", fits_matmul, scratch_bytes, prepare, release, run},
    {OP_LINEAR, "cublaslt", fits_linear, scratch_bytes, prepare, release, run},
    {OP_MATMUL_SCALED, "cublaslt", fits_matmul_scaled, scratch_bytes, prepare, release, run},
    {OP_LINEAR_GELU, "cublaslt", fits_linear_gelu, scratch_bytes, prepare, release, run},
    {OP_MATMUL_GELU_GRAD, "cublaslt", fits_matmul_gelu_grad, scratch_bytes, prepare, release, run},
    {OP_MATMUL_SUM, "cublaslt", fits_matmul_sum, scratch_bytes, prepare, release, run},
    {.run = NULL},
};

/* Bytes that the kernels beside the product move where it does not do their work. */
static int64_t bytes_beside(const struct product *p)
{
    int64_t y = p->M * p->N * dtype_size(p->out);
    switch (p->end) {
    case END_GELU:
        return 2 * y;
    case END_GELU_KEEP: /* GELU and its slope */
    case END_GELU_GRAD:
        return 3 * y;
    case END_SUM:
        return p->K * p->N * dtype_size(p->in);
    case END_STORE:
        break;
    }
    return 0;
}

static double us_of(const struct product *p, const struct kernel_call *c)
{
    struct product_parts parts;
    struct product_choice choice = {.us = 0};
    if (product_open(&parts, p) != ST_OK) return 0;
    if (product_choose(p, &parts, workspace_bytes(c), c->context, &choice) != ST_OK) choice.us = 0;
    product_close(&parts);
    return choice.us;
}

/* The same in two kernels: the product alone, and one that moves bytes at nine tenths of a copy's speed. */
static double us_apart(const struct product *p, const struct kernel_call *c)
{
    static const double SHARE = 0.9, LAUNCH_US = 1.5;
    struct product alone = *p;
    alone.end = END_STORE;
    alone.erf = false;
    int64_t bytes = bytes_beside(p) + product_copied_bytes(&alone);
    alone = product_even(&alone);
    double product = us_of(&alone, c), copy = product_copy_us(bytes, c->context);
    return product > 0 && copy > 0 ? product + copy / SHARE + LAUNCH_US : 0;
}

/* Of the row of our own, from the file of winners or measured now. */
static double us_own(const struct kernel *own, const char *name, const struct kernel_call *c)
{
    const char *device = cuda_device_of(c)->name;
    double us = own ? product_way_us(device, name, WAY_WGMMA) : 0;
    if (own && us <= 0 && (us = product_own_us(own, c)) > 0)
        product_way_keep(device, name, WAY_WGMMA, us);
    return us;
}

static double least_of(double a, double b)
{
    return a <= 0 || (b > 0 && b < a) ? b : a;
}

/* Whether a product and what stands beside it are faster as one, by the library or by a row of our own. */
static bool gains_as_one(enum op op, const struct kernel_call *c)
{
    struct product p;
    const struct kernel *own = product_hopper_row(op, c);
    bool library = has_algorithm(op, c);
    if (!library && !own) return false;
    bool fine = own ? product_hopper_of(op, c, &p) : gemm_of(op, c, &p);
    BUG_IF(!fine, "a product that does not fit");
    if (p.deterministic) return false; /* what a measurement decides is not done */
    if (cuda_plans_only(c->context)) return true;
    const char *device = cuda_device_of(c)->name;
    char name[PRODUCT_TEXT];
    product_text(&p, name);
    double together = library ? us_of(&p, c) : 0;
    together = least_of(together, us_own(own, name, c));
    double apart = product_way_us(device, name, WAY_APART);
    /* A plan does not change with a measurement's noise. */
    if (together > 0 && apart <= 0 && (apart = us_apart(&p, c)) > 0)
        product_way_keep(device, name, WAY_APART, apart);
    return together > 0 && apart > 0 &&
           together < apart; /* what could not be measured gains nothing */
}

bool cuda_gains(int op, const struct kernel_call *c)
{
    struct product p;
    if (op == OP_QUANTISE_GELU || op == OP_QUANTISE_GELU_GRAD || op == OP_QUANTISE_ADD_LAYERNORM)
        /* save writing and reading bf16 */
        return cuda_kernel(op, c, 0) != NULL;
    if (op == OP_GELU_BOTH) return false; /* bound by bytes, of which the slope is a third */
    /* Saves reading the gradient once more, where rows are not too long for it. */
    if (op == OP_LAYERNORM_GRAD_DROP) return cuda_kernel(op, c, 0) != NULL;
    if (op == OP_LINEAR) return c->in_type[2].dtype == DT_BF16 && gemm_of(OP_LINEAR, c, &p);
    return gains_as_one((enum op)op, c);
}

/* Worth being measured where nobody asked by cuda_gains. */
static bool is_long(const struct product *p)
{
    static const double LONG = 1e9;
    return 2.0 * (double)p->M * (double)p->N * (double)p->K >= LONG;
}

/* Both ways of a plain product are measured when it is first planned. */
static void measure_plain(const struct product *p, const struct kernel *own, const char *name,
                          const struct kernel_call *c)
{
    if (is_long(p) && us_own(own, name, c) > 0 && has_algorithm(OP_MATMUL, c)) us_of(p, c);
}

const struct kernel *cuda_faster(int op, const struct kernel_call *c)
{
    struct product p;
    struct product_choice library;
    const struct kernel *own = product_hopper_row(op, c);
    if (!own || !product_hopper_of((enum op)op, c, &p) || p.deterministic) return NULL;
    if (cuda_plans_only(c->context)) return op != OP_MATMUL || is_long(&p) ? own : NULL;
    const char *device = cuda_device_of(c)->name;
    char name[PRODUCT_TEXT];
    product_text(&p, name);
    if (op == OP_MATMUL) measure_plain(&p, own, name, c);
    double us = product_way_us(device, name, WAY_WGMMA);
    return us > 0 && (!product_winner(device, name, &library) || us < library.us) ? own : NULL;
}
