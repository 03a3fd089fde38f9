/* Matmuls by cuBLASLt: f32, TF32, bf16 with f32 sums, and 8 bits with a scale for each operand. */
#include "backend/cuda/matmul/matmul.h"

#include "backend/cuda/cuda_kernels.h"
#include "backend/cuda/runtime/context.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* Workspace sizes that NVIDIA recommends; all matmuls share one place in the arena. */
enum { HOPPER = 90, WORKSPACE_HOPPER = 32 << 20, WORKSPACE = 8 << 20 };

int64_t matmul_workspace_bytes(const struct kernel_call *c)
{
    return cuda_device_of(c)->arch >= HOPPER ? WORKSPACE_HOPPER : WORKSPACE;
}

struct prepared {
    struct matmul matmul;
    struct matmul_parts parts;
    struct matmul_choice choice;
    int64_t workspace_bytes;
    struct matmul_copies copies;
    struct kernel_call before, after; /* kernels that copy, if there are copies */
};

/* fits_NAME is true if types, attributes and the tuning table allow cuBLASLt. The library itself is
 * queried later, by `prepare`. */
#define FITS(name, op)                                   \
    static bool fits_##name(const struct kernel_call *c) \
    {                                                    \
        return matmul_decide(op, c).library;             \
    }
FITS(matmul, OP_MATMUL)
FITS(linear, OP_LINEAR)
FITS(matmul_scaled, OP_MATMUL_SCALED)
FITS(linear_gelu, OP_LINEAR_GELU)
FITS(matmul_gelu_grad, OP_MATMUL_GELU_GRAD)
FITS(matmul_sum, OP_MATMUL_SUM)

/* MATMUL_WORKSPACE_ALIGN is added because the workspace needs a larger alignment than scratch
 * memory has. */
static int64_t scratch_bytes(const struct kernel *k, const struct kernel_call *c)
{
    return matmul_copies(k->op, c).bytes + matmul_workspace_bytes(c) + MATMUL_WORKSPACE_ALIGN;
}

static void release(struct kernel_call *c)
{
    struct prepared *r = c->state;
    if (!r) return;
    if (r->before.state) cuda_release(&r->before);
    if (r->after.state) cuda_release(&r->after);
    matmul_close(&r->parts);
    free(r);
    c->state = NULL;
}

static enum status prepare_launches(const struct cuda_row *row, enum op op,
                                    const struct kernel_call *c, struct kernel_call *ret)
{
    while (row->kernel.run && row->kernel.op != op) row++;
    BUG_IF(!row->kernel.run, "no copy kernels for %s", op_def(op)->name);
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

/* Converts the hexadecimal digits of an algorithm, 16 per word. tuning_read has checked the digits.
 */
static void read_algorithm(const char *digits, cublasLtMatmulAlgo_t *ret)
{
    enum { DIGITS = 16 };
    _Static_assert(sizeof ret->data * 2 == TUNING_ALGORITHM - 1, "digits of an algorithm");
    for (int i = 0; i < COUNT_OF(ret->data); i++) {
        char word[DIGITS + 1] = "";
        memcpy(word, digits + i * DIGITS, DIGITS);
        ret->data[i] = strtoull(word, NULL, 16);
    }
}

/* Chooses the algorithm of the tuning table if this version of the library accepts it and its
 * workspace is not too large, otherwise the first algorithm that the library's heuristics propose.
 */
static enum status choose(enum op op, const struct kernel_call *c, struct prepared *r)
{
    struct matmul_decision d = matmul_decide(op, c);
    cublasLtMatmulHeuristicResult_t first;
    if (d.algorithm) {
        read_algorithm(d.algorithm, &r->choice.algorithm);
        if (cublaslt(NULL)->cublasLtMatmulAlgoCheck(
                cublaslt_handle(), r->parts.operation, r->parts.b, r->parts.a, r->parts.out,
                r->parts.out, &r->choice.algorithm, &first) == CUBLAS_STATUS_SUCCESS &&
            (int64_t)first.workspaceSize <= r->workspace_bytes) {
            r->choice.workspace_bytes = (int64_t)first.workspaceSize;
            return ST_OK;
        }
        log_warning("cuBLASLt rejects the tuning table's algorithm for %s; its first guess is used",
                    d.key);
    }
    if (matmul_candidates(&r->parts, r->workspace_bytes, 1, &first) == 0)
        return fail(ST_UNSUPPORTED,
                    "cuBLASLt has no algorithm for %s; tune=auto selects another kernel", d.key);
    r->choice = (struct matmul_choice){first.algo, (int64_t)first.workspaceSize};
    return ST_OK;
}

static enum status choose_timed(enum op op, const struct kernel_call *c, struct prepared *r)
{
    int64_t start = clock_ns();
    enum status st = choose(op, c, r);
    cuda_count_choosing(c->context, clock_ns() - start);
    return st;
}

static enum status prepare(const struct kernel *k, struct kernel_call *c)
{
    struct prepared *r = HEAP_NEW(struct prepared, 1);
    c->state = r;
    r->workspace_bytes = matmul_workspace_bytes(c);
    bool fine = gemm_of(k->op, c, &r->matmul);
    BUG_IF(!fine, "a matmul that does not fit its kernel");
    enum status st = ST_OK;
    r->matmul = matmul_padded(&r->matmul);
    r->copies = matmul_copies(k->op, c);
    TRY_OUT(st, matmul_open(&r->parts, &r->matmul));
    TRY_OUT(st, choose_timed(k->op, c, r));
    if (r->copies.bias >= 0 || r->copies.a >= 0 || r->copies.b >= 0)
        TRY_OUT(st, prepare_launches(matmul_before, k->op, c, &r->before));
    if (r->copies.out >= 0) TRY_OUT(st, prepare_launches(matmul_after, k->op, c, &r->after));
out:
    if (st != ST_OK) release(c);
    return st;
}

static void *workspace_of(const struct kernel_call *c, int64_t before)
{
    uintptr_t at = (uintptr_t)c->scratch + (uintptr_t)before + MATMUL_WORKSPACE_ALIGN - 1;
    return (void *)(at / MATMUL_WORKSPACE_ALIGN * MATMUL_WORKSPACE_ALIGN);
}

static void *copy_of(const struct kernel_call *c, int64_t offset, void *itself)
{
    return offset == COPY_NONE ? itself : (char *)c->scratch + offset;
}

static enum status run(const struct kernel_call *c)
{
    struct prepared *r = c->state;
    enum matmul_epilogue epilogue = r->matmul.epilogue;
    struct matmul_memory m = {.a = copy_of(c, r->copies.a, c->in[0]),
                              .b = copy_of(c, r->copies.b, c->in[1]),
                              .out = copy_of(c, r->copies.out, c->out[0]),
                              .workspace = workspace_of(c, r->copies.bytes),
                              .workspace_bytes = r->workspace_bytes};
    void *piece = cuda_workspace_piece(c->context, r->choice.workspace_bytes);
    if (piece) m.workspace = piece, m.workspace_bytes = r->choice.workspace_bytes;
    bool scaled = matmul_is_scaled(&r->matmul);
    if (scaled) m.scale_a = c->in[2], m.scale_b = c->in[3];
    if (r->matmul.bias) m.bias = scaled ? c->in[4] : copy_of(c, r->copies.bias, c->in[2]);
    if (epilogue == EPILOGUE_SUM) m.bias = c->out[1];
    if (epilogue == EPILOGUE_GELU_KEEP) m.second = c->out[1];
    if (epilogue == EPILOGUE_GELU_GRAD) m.second = c->in[2];
    if (r->before.state) TRY(run_launches(&r->before, c));
    cuda_count_launch(c->context, "of cuBLASLt");
    TRY(matmul_run(&r->parts, &r->choice.algorithm, &m, cuda_stream(c->context)));
    return r->after.state ? run_launches(&r->after, c) : ST_OK;
}

const struct kernel matmul_cublaslt_rows[] = {
    {OP_MATMUL, "cublaslt", .fits = fits_matmul, scratch_bytes, prepare, release, run},
    {OP_LINEAR, "cublaslt", .fits = fits_linear, scratch_bytes, prepare, release, run},
    {OP_MATMUL_SCALED, "cublaslt", .fits = fits_matmul_scaled, scratch_bytes, prepare, release,
     run},
    {OP_LINEAR_GELU, "cublaslt", .fits = fits_linear_gelu, scratch_bytes, prepare, release, run},
    {OP_MATMUL_GELU_GRAD, "cublaslt", .fits = fits_matmul_gelu_grad, scratch_bytes, prepare,
     release, run},
    {OP_MATMUL_SUM, "cublaslt", .fits = fits_matmul_sum, scratch_bytes, prepare, release, run},
    {.run = NULL},
};
