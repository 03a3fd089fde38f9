/* Matrix products by cuBLASLt: f32, f32 rounded to TF32, and bf16 with sums in f32. */
#include "backend/cuda/product.h"

#include "backend/cuda/context.h"
#include "backend/cuda/cuda_kernels.h"

#include <stdio.h>
#include <stdlib.h>

/* What the library asks for at most, of its manual; one place in the arena serves all products. */
enum { HOPPER = 90, WORKSPACE_HOPPER = 32 << 20, WORKSPACE = 8 << 20 };

static int64_t workspace_bytes(const struct kernel_call *c)
{
    return cuda_device_of(c)->arch >= HOPPER ? WORKSPACE_HOPPER : WORKSPACE;
}

/* The library takes a bias of the output's type; one in f32 for a product in bf16 is rounded first, as an
 * eager framework's autocast does. A launch of a few hundred elements. */
static void launch_narrow(const struct kernel_call *c, struct cuda_launches *l)
{
    enum { THREADS = 256 };
    int64_t n = type_elements(&c->in_type[2]);
    struct cuda_launch *k =
        launch_add(l, "bias.cu", "narrow", (n + THREADS - 1) / THREADS, THREADS);
    arg_in(k, 2);
    arg_scratch(k, launch_scratch(l, n * dtype_size(DT_BF16)));
    arg_i32(k, n);
}

static const struct cuda_row narrow = CUDA_ROW(LINEAR, "bias", NULL, launch_narrow);

static bool narrows(enum op op, const struct kernel_call *c)
{
    return product_has_bias(op, c) && c->in_type[2].dtype == DT_F32 &&
           c->out_type[0].dtype == DT_BF16;
}

/* What prepare makes. */
struct prepared {
    struct product product;
    struct product_parts parts;
    struct product_choice choice;
    int64_t workspace_bytes, narrow_bytes;
    struct kernel_call narrow; /* the launch before the product, if the bias must be rounded */
};

/* The library has an algorithm for it; where there is no GPU to ask for, it is taken to have one. */
static bool has_algorithm(enum op op, const struct kernel_call *c)
{
    struct product p;
    if (!gemm_of(op, c, &p)) return false;
    if (cuda_plans_only(c->context)) return true;
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
    int64_t bias = narrows(k->op, c) ? cuda_scratch_bytes(&narrow.kernel, c) : 0;
    return bias + workspace_bytes(c) + PRODUCT_WORKSPACE_ALIGN;
}

static void release(struct kernel_call *c)
{
    struct prepared *r = c->state;
    if (!r) return;
    if (r->narrow.state) cuda_release(&r->narrow);
    product_close(&r->parts);
    free(r);
    c->state = NULL;
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
    TRY_OUT(st, product_open(&r->parts, &r->product));
    TRY_OUT(st, product_choose(&r->product, &r->parts, r->workspace_bytes, c->context, &r->choice));
    if (narrows(k->op, c)) {
        r->narrow = *c;
        r->narrow.state = NULL;
        r->narrow_bytes = cuda_scratch_bytes(&narrow.kernel, c);
        TRY_OUT(st, cuda_prepare(&narrow.kernel, &r->narrow));
    }
out:
    if (st != ST_OK) release(c);
    return st;
}

static void *workspace_of(const struct kernel_call *c, int64_t before)
{
    uintptr_t at = (uintptr_t)c->scratch + (uintptr_t)before + PRODUCT_WORKSPACE_ALIGN - 1;
    return (void *)(at / PRODUCT_WORKSPACE_ALIGN * PRODUCT_WORKSPACE_ALIGN);
}

static enum status run(const struct kernel_call *c)
{
    struct prepared *r = c->state;
    enum product_end end = r->product.end;
    struct product_memory m = {.a = c->in[0],
                               .b = c->in[1],
                               .out = c->out[0],
                               .workspace = workspace_of(c, r->narrow_bytes),
                               .workspace_bytes = r->workspace_bytes};
    if (r->product.bias) m.bias = c->in[2];
    if (end == END_SUM) m.bias = c->out[1];
    if (end == END_GELU_KEEP) m.beside = c->out[1];
    if (end == END_GELU_GRAD) m.beside = c->in[2];
    if (r->narrow_bytes) {
        r->narrow.in[2] = c->in[2];
        r->narrow.scratch = c->scratch;
        TRY(cuda_run(&r->narrow));
        m.bias = c->scratch;
    }
    cuda_count_start(c->context);
    return product_run(&r->parts, &r->choice.algorithm, &m, cuda_stream(c->context));
}

const struct kernel product_rows[] = {
    {OP_MATMUL, "cublaslt", fits_matmul, scratch_bytes, prepare, release, run},
    {OP_LINEAR, "cublaslt", fits_linear, scratch_bytes, prepare, release, run},
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
    double product = us_of(&alone, c), copy = product_copy_us(bytes_beside(p), c->context);
    return product > 0 && copy > 0 ? product + copy / SHARE + LAUNCH_US : 0;
}

bool cuda_gains(int op, const struct kernel_call *c)
{
    struct product p;
    if (op == OP_GELU_BOTH) return false; /* bound by bytes, of which the slope is a third */
    if (op == OP_LINEAR) return c->in_type[2].dtype == DT_BF16 && gemm_of(OP_LINEAR, c, &p);
    if (!has_algorithm((enum op)op, c)) return false;
    if (cuda_plans_only(c->context)) return true;
    const char *device = cuda_device_of(c)->name;
    char name[PRODUCT_TEXT];
    bool fine = gemm_of((enum op)op, c, &p);
    BUG_IF(!fine, "a product that does not fit");
    product_text(&p, name);
    double together = us_of(&p, c), apart = product_apart_us(device, name);
    if (together > 0 && apart <= 0 && (apart = us_apart(&p, c)) > 0)
        product_apart_keep(device, name,
                           apart); /* a plan does not change with a measurement's noise */
    return together <= 0 || apart <= 0 || together < apart;
}
