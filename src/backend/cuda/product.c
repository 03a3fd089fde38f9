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

static bool has_bias(const struct kernel_call *c)
{
    return c->n_in == 3;
}

static bool narrows(const struct kernel_call *c)
{
    return has_bias(c) && c->in_type[2].dtype == DT_F32 && c->out_type[0].dtype == DT_BF16;
}

/* What prepare makes. */
struct prepared {
    struct product_parts parts;
    cublasLtMatmulAlgo_t algorithm;
    int64_t workspace_bytes, narrow_bytes;
    struct kernel_call narrow; /* the launch before the product, if the bias must be rounded */
};

static bool fits(const struct kernel_call *c)
{
    struct product p;
    if (!gemm_of(c, &p)) return false;
    if (cuda_plans_only(c->context)) return true;
    struct product_parts parts;
    cublasLtMatmulHeuristicResult_t first;
    if (!cublaslt_handle() || product_open(&parts, &p) != ST_OK) return false;
    int n = product_candidates(&parts, workspace_bytes(c), 1, &first);
    product_close(&parts);
    return n > 0;
}

/* The workspace starts at a multiple of more than scratch does. */
static int64_t scratch_bytes(const struct kernel *k, const struct kernel_call *c)
{
    (void)k;
    int64_t bias = narrows(c) ? cuda_scratch_bytes(&narrow.kernel, c) : 0;
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
    (void)k;
    struct product p;
    bool fine = gemm_of(c, &p);
    BUG_IF(!fine, "a product that does not fit");
    if (cuda_plans_only(c->context)) return ST_OK;
    struct prepared *r = calloc(1, sizeof *r);
    BUG_IF(!r, "no host memory");
    c->state = r;
    enum status st = ST_OK;
    r->workspace_bytes = workspace_bytes(c);
    TRY_OUT(st, product_open(&r->parts, &p));
    TRY_OUT(st, product_choose(&p, &r->parts, r->workspace_bytes, c->context, &r->algorithm));
    if (narrows(c)) {
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
    struct product_memory m = {.a = c->in[0],
                               .b = c->in[1],
                               .bias = has_bias(c) ? c->in[2] : NULL,
                               .out = c->out[0],
                               .workspace = workspace_of(c, r->narrow_bytes),
                               .workspace_bytes = r->workspace_bytes};
    if (r->narrow_bytes) {
        r->narrow.in[2] = c->in[2];
        r->narrow.scratch = c->scratch;
        TRY(cuda_run(&r->narrow));
        m.bias = c->scratch;
    }
    return product_run(&r->parts, &r->algorithm, &m, cuda_stream(c->context));
}

const struct kernel product_rows[] = {
    {OP_MATMUL, "cublaslt", fits, scratch_bytes, prepare, release, run},
    {OP_LINEAR, "cublaslt", fits, scratch_bytes, prepare, release, run},
    {.run = NULL},
};
