/* Describes a call as a struct matmul, and a struct matmul with cuBLASLt's descriptors. */
#include "backend/cuda/matmul/matmul.h"

#include <stdio.h>

bool matmul_has_bias(enum op op, const struct kernel_call *c)
{
    return (op == OP_LINEAR || op == OP_LINEAR_GELU) && c->n_in == 3;
}

bool matmul_is_scaled(const struct matmul *p)
{
    return dtype_is_float8(p->in);
}

bool matmul_has_second(const struct matmul *p)
{
    return p->epilogue == EPILOGUE_GELU_KEEP || p->epilogue == EPILOGUE_GELU_GRAD;
}

static bool types_fit(enum op op, const struct kernel_call *c)
{
    enum dtype in = c->in_type[0].dtype, out = c->out_type[0].dtype, bias = c->in_type[2].dtype;
    if (matmul_has_bias(op, c) && bias != DT_F32 && bias != out) return false;
    return in == DT_BF16 ? out == DT_BF16 || out == DT_F32 : in == DT_F32 && out == DT_F32;
}

/* If rows of an operand are not multiples of 8 elements, the library rounds the sums to bf16 before
 * it adds the bias or applies GELU (in PyTorch, too: error 3.0e-3 at K = 129, 1.7e-3 at 128). */
static bool has_aligned_rows(const struct kernel_call *c)
{
    enum { ROWS = 8 };
    return type_columns(&c->out_type[0]) % ROWS == 0 && type_columns(&c->in_type[0]) % ROWS == 0;
}

/* Finds the library's epilogue for the operator. Returns false if the library has no such epilogue
 * for these shapes or if its epilogue is not accurate enough: the library's GELU is the tanh form,
 * and its derivative of GELU in f32 has an error of 2.6e-6. */
static bool epilogue_of(enum op op, const struct kernel_call *c, enum matmul_epilogue *ret)
{
    const struct type *x = &c->in_type[0];
    bool aligned = has_aligned_rows(c);
    switch (op) {
    case OP_LINEAR_GELU:
        *ret = c->attr->linear.keep ? EPILOGUE_GELU_KEEP : EPILOGUE_GELU;
        return c->attr->linear.tanh && aligned;
    case OP_MATMUL_GELU_GRAD:
        *ret = EPILOGUE_GELU_GRAD;
        return c->attr->matmul.tanh && aligned && c->in_type[1].rank == 2 &&
               (x->dtype == DT_BF16 || c->numerics.tf32);
    case OP_MATMUL_SUM:
        *ret = EPILOGUE_SUM;
        return true;
    default:
        *ret = EPILOGUE_STORE;
        return true;
    }
}

static bool is_aligned(int64_t n)
{
    enum { WORD = 16 };
    return n % WORD == 0;
}

/* Describes a matmul of 8-bit operands. Returns false if the library does not support the types or
 * the shape; for example, it does not support e5m2 for both operands. */
static bool scaled_of(const struct kernel_call *c, struct matmul *ret)
{
    enum dtype a = c->in_type[0].dtype, b = c->in_type[1].dtype, y = c->out_type[0].dtype;
    bool bias = c->n_in == 5;
    *ret = (struct matmul){.in = a, .in_b = b, .out = y, .batch = 1, .tb = true, .bias = bias};
    ret->bias_type = c->in_type[4].dtype;
    ret->M = c->in_type[0].dim[0];
    ret->N = c->in_type[1].dim[0];
    ret->K = c->in_type[0].dim[1];
    ret->fast = c->attr->matmul.fast;
    ret->deterministic = c->numerics.deterministic;
    if (!dtype_is_float8(a) || !dtype_is_float8(b) || (a == DT_E5M2 && b == DT_E5M2)) return false;
    if (bias && (y != DT_BF16 || c->in_type[4].dtype != DT_BF16)) return false;
    return (y == DT_BF16 || y == DT_F32) && c->in_type[2].dtype == DT_F32 && is_aligned(ret->M) &&
           is_aligned(ret->N) && is_aligned(ret->K);
}

bool gemm_of(enum op op, const struct kernel_call *c, struct matmul *ret)
{
    if (op == OP_MATMUL_SCALED) return scaled_of(c, ret);
    const struct type *a = &c->in_type[0], *b = &c->in_type[1], *y = &c->out_type[0];
    bool linear = op == OP_LINEAR || op == OP_LINEAR_GELU;
    enum matmul_epilogue epilogue;
    if (linear ? c->attr->linear.packed : c->attr->matmul.packed) return false;
    if (!types_fit(op, c) || !epilogue_of(op, c, &epilogue)) return false;
    *ret = (struct matmul){.in = a->dtype, .in_b = a->dtype, .out = y->dtype, .batch = 1};
    ret->epilogue = epilogue;
    ret->bias = matmul_has_bias(op, c);
    ret->bias_type = c->in_type[2].dtype;
    ret->ta = !linear && c->attr->matmul.ta;
    ret->tb = linear ? c->attr->linear.tb : c->attr->matmul.tb;
    ret->tf32 = a->dtype == DT_F32 && c->numerics.tf32;
    ret->deterministic = c->numerics.deterministic;
    ret->N = type_columns(y);
    ret->K = a->dim[a->rank - (ret->ta ? 2 : 1)];
    ret->M = type_rows(y);
    if (b->rank > 2) { /* else the matrix b is shared by all rows of a */
        ret->M = y->dim[y->rank - 2];
        ret->batch = type_rows(y) / ret->M;
    }
    return true;
}

bool matmul_library_fits(enum op op, const struct kernel_call *c, struct matmul *ret)
{
    bool rounds_sums = op == OP_LINEAR && matmul_has_bias(op, c) && c->out_type[0].dtype == DT_BF16;
    return gemm_of(op, c, ret) && (!rounds_sums || has_aligned_rows(c));
}

void matmul_text(const struct matmul *p, char ret_text[MATMUL_TEXT])
{
    static const char *const epilogues[] = {[EPILOGUE_STORE] = "",
                                            [EPILOGUE_GELU] = ", gelu",
                                            [EPILOGUE_GELU_KEEP] = ", gelu and x",
                                            [EPILOGUE_GELU_GRAD] = ", gelu's gradient",
                                            [EPILOGUE_SUM] = ", sum of rows"};
    const char *erf = p->erf ? " by erf" : "";
    char batch[32] = "", types[32], bias[16] = "";
    snprintf(types, sizeof types, "%s%s%s", p->tf32 ? "tf32" : dtype_name(p->in),
             p->in == p->in_b ? "" : " by ", p->in == p->in_b ? "" : dtype_name(p->in_b));
    if (p->batch > 1) snprintf(batch, sizeof batch, "%lld times ", (long long)p->batch);
    if (p->bias) snprintf(bias, sizeof bias, ", %s bias", dtype_name(p->bias_type));
    snprintf(ret_text, MATMUL_TEXT, "%s%s (%lld,%lld)%s x (%lld,%lld)%s -> %s%s%s%s%s", batch,
             types, (long long)p->M, (long long)p->K, p->ta ? " ta" : "", (long long)p->K,
             (long long)p->N, p->tb ? " tb" : "", dtype_name(p->out), bias, p->fast ? ", fast" : "",
             epilogues[p->epilogue], erf);
}

static cudaDataType_t type_word(enum dtype dtype)
{
    static const cudaDataType_t words[DT_COUNT] = {[DT_F32] = CUDA_R_32F,
                                                   [DT_BF16] = CUDA_R_16BF,
                                                   [DT_E4M3] = CUDA_R_8F_E4M3,
                                                   [DT_E5M2] = CUDA_R_8F_E5M2};
    return words[dtype];
}

static cublasStatus_t set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t which,
                          const void *from, size_t bytes)
{
    return cublaslt(NULL)->cublasLtMatmulDescSetAttribute(d, which, from, bytes);
}

/* The layout of `batch` contiguous row-major matrices (rows, columns). */
static cublasStatus_t open_layout(cublasLtMatrixLayout_t *ret, enum dtype dtype, int64_t rows,
                                  int64_t columns, int64_t batch)
{
    const struct cublaslt *t = cublaslt(NULL);
    int32_t times = (int32_t)batch;
    int64_t step = rows * columns;
    cublasStatus_t s = t->cublasLtMatrixLayoutCreate(ret, type_word(dtype), (uint64_t)columns,
                                                     (uint64_t)rows, columns);
    if (s == CUBLAS_STATUS_SUCCESS && batch > 1)
        s = t->cublasLtMatrixLayoutSetAttribute(*ret, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &times,
                                                sizeof times);
    if (s == CUBLAS_STATUS_SUCCESS && batch > 1)
        s = t->cublasLtMatrixLayoutSetAttribute(*ret, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &step, sizeof step);
    return s;
}

/* The library computes the transposed product in column-major order, so its operand A is our b. */
static cublasStatus_t set_scales(cublasLtMatmulDesc_t d, const void *scale_a, const void *scale_b)
{
    cublasStatus_t s = set(d, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale_b, sizeof scale_b);
    return s == CUBLAS_STATUS_SUCCESS
               ? set(d, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &scale_a, sizeof scale_a)
               : s;
}

static cublasStatus_t set_pointers(cublasLtMatmulDesc_t d, const void *bias, const void *second)
{
    cublasStatus_t s = CUBLAS_STATUS_SUCCESS;
    if (bias) s = set(d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    if (second && s == CUBLAS_STATUS_SUCCESS)
        s = set(d, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &second, sizeof second);
    return s;
}

static cublasStatus_t set_epilogue(cublasLtMatmulDesc_t d, const struct matmul *p)
{
    static const cublasLtEpilogue_t words[][2] = {
        [EPILOGUE_STORE] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS},
        [EPILOGUE_GELU] = {CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS},
        [EPILOGUE_GELU_KEEP] = {CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
        [EPILOGUE_GELU_GRAD] = {CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_DGELU},
        /* BGRADA: the library's A is our b. */
        [EPILOGUE_SUM] = {CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADA},
    };
    int64_t columns = p->N;
    cublasStatus_t s =
        set(d, CUBLASLT_MATMUL_DESC_EPILOGUE, &words[p->epilogue][p->bias], sizeof words[0][0]);
    if (matmul_has_second(p) && s == CUBLAS_STATUS_SUCCESS)
        s = set(d, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &columns, sizeof columns);
    if (s != CUBLAS_STATUS_SUCCESS) return s;
    /* The library's heuristics read only the alignment of these addresses. */
    const void *somewhere = (const void *)(uintptr_t)MATMUL_ALIGNMENT;
    bool vector = p->bias || p->epilogue == EPILOGUE_SUM;
    return set_pointers(d, vector ? somewhere : NULL, matmul_has_second(p) ? somewhere : NULL);
}

static cublasStatus_t open_operation(cublasLtMatmulDesc_t *ret, const struct matmul *p)
{
    cublasOperation_t ta = p->ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                      tb = p->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasComputeType_t compute = p->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublasStatus_t s = cublaslt(NULL)->cublasLtMatmulDescCreate(ret, compute, CUDA_R_32F);
    if (s == CUBLAS_STATUS_SUCCESS) s = set(*ret, CUBLASLT_MATMUL_DESC_TRANSA, &tb, sizeof tb);
    if (s == CUBLAS_STATUS_SUCCESS) s = set(*ret, CUBLASLT_MATMUL_DESC_TRANSB, &ta, sizeof ta);
    int8_t fast = p->fast;
    if (s == CUBLAS_STATUS_SUCCESS && matmul_is_scaled(p))
        s = set(*ret, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
    return s == CUBLAS_STATUS_SUCCESS ? set_epilogue(*ret, p) : s;
}

enum status matmul_open(struct matmul_parts *parts, const struct matmul *p)
{
    *parts = (struct matmul_parts){0};
    cublasStatus_t s = open_operation(&parts->operation, p);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = open_layout(&parts->a, p->in, p->ta ? p->K : p->M, p->ta ? p->M : p->K, p->batch);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = open_layout(&parts->b, p->in_b, p->tb ? p->N : p->K, p->tb ? p->K : p->N, p->batch);
    if (s == CUBLAS_STATUS_SUCCESS) s = open_layout(&parts->out, p->out, p->M, p->N, p->batch);
    if (s != CUBLAS_STATUS_SUCCESS) matmul_close(parts);
    return cublaslt_check(s, "describe a matmul");
}

void matmul_close(struct matmul_parts *parts)
{
    const struct cublaslt *t = cublaslt(NULL);
    if (parts->operation) t->cublasLtMatmulDescDestroy(parts->operation);
    if (parts->a) t->cublasLtMatrixLayoutDestroy(parts->a);
    if (parts->b) t->cublasLtMatrixLayoutDestroy(parts->b);
    if (parts->out) t->cublasLtMatrixLayoutDestroy(parts->out);
    *parts = (struct matmul_parts){0};
}

/* Allows split-K only with f32 partial sums in a fixed order, so every run has the same result. */
static cublasStatus_t open_preference(cublasLtMatmulPreference_t *ret, int64_t workspace_bytes)
{
    const struct cublaslt *t = cublaslt(NULL);
    uint64_t bytes = (uint64_t)workspace_bytes;
    uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, alignment = MATMUL_ALIGNMENT;
    const struct {
        cublasLtMatmulPreferenceAttributes_t which;
        const void *from;
        size_t bytes;
    } wishes[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof reduction},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignment, sizeof alignment},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &alignment, sizeof alignment},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &alignment, sizeof alignment},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &alignment, sizeof alignment},
    };
    cublasStatus_t s = t->cublasLtMatmulPreferenceCreate(ret);
    for (int i = 0; i < COUNT_OF(wishes) && s == CUBLAS_STATUS_SUCCESS; i++)
        s = t->cublasLtMatmulPreferenceSetAttribute(*ret, wishes[i].which, wishes[i].from,
                                                    wishes[i].bytes);
    return s;
}

int matmul_candidates(const struct matmul_parts *parts, int64_t workspace_bytes, int most,
                      cublasLtMatmulHeuristicResult_t *ret)
{
    const struct cublaslt *t = cublaslt(NULL);
    cublasLtMatmulPreference_t preference = NULL;
    cublasStatus_t s = open_preference(&preference, workspace_bytes);
    int found = 0, fine = 0;
    if (s == CUBLAS_STATUS_SUCCESS)
        s = t->cublasLtMatmulAlgoGetHeuristic(cublaslt_handle(), parts->operation, parts->b,
                                              parts->a, parts->out, parts->out, preference, most,
                                              ret, &found);
    if (preference) t->cublasLtMatmulPreferenceDestroy(preference);
    for (int i = 0; s == CUBLAS_STATUS_SUCCESS && i < found; i++)
        if (ret[i].state == CUBLAS_STATUS_SUCCESS) ret[fine++] = ret[i];
    return fine;
}

enum status matmul_run(const struct matmul_parts *parts, const cublasLtMatmulAlgo_t *algorithm,
                       const struct matmul_memory *m, CUstream stream)
{
    const float one = 1, zero = 0;
    cublasStatus_t s = set_pointers(parts->operation, m->bias, m->second);
    if (s == CUBLAS_STATUS_SUCCESS && m->scale_a)
        s = set_scales(parts->operation, m->scale_a, m->scale_b);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublaslt(NULL)->cublasLtMatmul(cublaslt_handle(), parts->operation, &one, m->b,
                                           parts->b, m->a, parts->a, &zero, m->out, parts->out,
                                           m->out, parts->out, algorithm, m->workspace,
                                           (size_t)m->workspace_bytes, stream);
    return cublaslt_check(s, "multiply");
}
