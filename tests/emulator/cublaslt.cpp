/* cuBLASLt: the matmuls that the program requests, computed on the host in float, also for 8-bit
 * operands. There are two algorithms for each matmul, which differ in the order of addition.
 * Matrices are column-major, as in the library. */
#include <cublasLt.h>

#include "engine.hpp"
#include "streams.hpp"

#include <algorithm>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <vector>

namespace
{

enum : size_t { ALGORITHMS = 2, WORKSPACE = 256, COUNTERS = 64 };
/* Whatever its size. */
const double MATMUL_MS = 0.5, HALVES_MS = 0.4, JOINT_MS = 0.003;

/* A descriptor of the program: its values by attribute number. */
struct operation {
    bool ta, tb, tf32;
    cublasLtEpilogue_t end;
    void *bias, *beside;
    int64_t beside_step;
    const float *scale_a, *scale_b; /* of 8-bit operands, read when the matmul runs; NULL: 1 */
};
struct layout {
    cudaDataType_t type;
    int64_t rows, columns, step;
    int batch;
    int64_t batch_step;
};

bool is_eight(const layout &l)
{
    return l.type == CUDA_R_8F_E4M3 || l.type == CUDA_R_8F_E5M2;
}

float read_eight(cudaDataType_t type, unsigned code)
{
    bool e4m3 = type == CUDA_R_8F_E4M3;
    int mantissa = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15, whole = 1 << mantissa;
    int size = code & 0x7f, exponent = size >> mantissa, digits = size % whole;
    float sign = code & 0x80 ? -1.0f : 1.0f;
    if (e4m3 ? size == 0x7f : exponent == 31) return !e4m3 && !digits ? sign * INFINITY : NAN;
    return exponent ? sign * ldexpf((float)(whole + digits), exponent - bias - mantissa)
                    : sign * ldexpf((float)digits, 1 - bias - mantissa);
}

float read(const layout &l, const void *from, int64_t i)
{
    if (l.type == CUDA_R_32F) return ((const float *)from)[i];
    if (is_eight(l)) return read_eight(l.type, ((const unsigned char *)from)[i]);
    unsigned bits = (unsigned)((const unsigned short *)from)[i] << 16;
    float a;
    memcpy(&a, &bits, sizeof a);
    return a;
}

/* 10 bits of mantissa */
float rounded_to_tf32(float a)
{
    unsigned bits;
    memcpy(&bits, &a, sizeof bits);
    if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0x1000u) & 0xffffe000u;
    memcpy(&a, &bits, sizeof a);
    return a;
}

void write(const layout &l, void *to, int64_t i, float a)
{
    unsigned bits;
    memcpy(&bits, &a, sizeof bits);
    if (l.type == CUDA_R_32F)
        ((float *)to)[i] = a;
    else
        ((unsigned short *)to)[i] =
            (unsigned short)((a != a ? 0x7fffffffu : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The tanh approximation of GELU, and its slope. */
float gelu(float x)
{
    return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}
float gelu_derivative(float x)
{
    float t = tanhf(0.7978845608f * (x + 0.044715f * x * x * x));
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.7978845608f * (1 + 3 * 0.044715f * x * x);
}

bool adds_bias(cublasLtEpilogue_t e)
{
    return e == CUBLASLT_EPILOGUE_BIAS || e == CUBLASLT_EPILOGUE_GELU_BIAS ||
           e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

bool takes_gelu(cublasLtEpilogue_t e)
{
    return e == CUBLASLT_EPILOGUE_GELU || e == CUBLASLT_EPILOGUE_GELU_BIAS ||
           e == CUBLASLT_EPILOGUE_GELU_AUX || e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

bool is_known(cublasLtEpilogue_t e)
{
    return e == CUBLASLT_EPILOGUE_DEFAULT || adds_bias(e) || takes_gelu(e) ||
           e == CUBLASLT_EPILOGUE_DGELU || e == CUBLASLT_EPILOGUE_BGRADA;
}

/* One matmul; algorithm 1 adds in 16 partial sums, 2 in 4. */
struct product {
    operation o;
    layout a, b, d;
    const void *from_a, *from_b;
    void *to;
    float alpha;
    int sums;

    int64_t inner() const { return o.ta ? a.rows : a.columns; }

    /* 8-bit operands: contiguous along k, sizes multiples of 16, at most one is E5M2. */
    bool eight_fits() const
    {
        bool even = d.rows % 16 == 0 && d.columns % 16 == 0 && inner() % 16 == 0;
        bool both_wide = a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2;
        bool plain = o.end == CUBLASLT_EPILOGUE_DEFAULT ||
                     (o.end == CUBLASLT_EPILOGUE_BIAS && d.type == CUDA_R_16BF);
        return is_eight(a) && is_eight(b) && o.ta && !o.tb && even && !both_wide && plain;
    }

    bool fits() const
    {
        if ((is_eight(a) || is_eight(b)) && !eight_fits()) return false;
        return (o.ta ? a.columns : a.rows) == d.rows && (o.tb ? b.rows : b.columns) == d.columns &&
               (o.tb ? b.columns : b.rows) == inner() && a.batch == d.batch && b.batch == d.batch;
    }

    /* Rows of the operands, each whole and in float. */
    std::vector<float> rows_of(const layout &l, const void *from, bool transposed, int64_t rows,
                               int z) const
    {
        int64_t k = inner();
        std::vector<float> all((size_t)(rows * k));
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < k; j++)
                all[(size_t)(i * k + j)] = read(
                    l, from, z * l.batch_step + (transposed ? i * l.step + j : j * l.step + i));
        if (o.tf32)
            for (float &x : all) x = rounded_to_tf32(x);
        return all;
    }

    float scale() const
    {
        return (o.scale_a ? *o.scale_a : 1.0f) * (o.scale_b ? *o.scale_b : 1.0f);
    }

    template <int SUMS> float dot(const float *x, const float *y) const
    {
        float part[SUMS] = {}, sum = 0;
        int64_t n = inner(), i = 0;
        for (; i + SUMS <= n; i += SUMS)
            for (int e = 0; e < SUMS; e++) part[e] += x[i + e] * y[i + e];
        for (; i < n; i++) part[0] += x[i] * y[i];
        for (float one : part) sum += one;
        return alpha * scale() * sum;
    }

    void finish(int64_t i, int64_t j, int z, float sum) const
    {
        int64_t beside = j * o.beside_step + i;
        if (adds_bias(o.end)) sum += read(d, o.bias, i);
        if (o.end == CUBLASLT_EPILOGUE_GELU_AUX || o.end == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
            write(d, o.beside, beside, sum);
        if (takes_gelu(o.end)) sum = gelu(sum);
        if (o.end == CUBLASLT_EPILOGUE_DGELU) sum *= gelu_derivative(read(d, o.beside, beside));
        write(d, to, z * d.batch_step + j * d.step + i, sum);
    }

    void run() const
    {
        auto add = sums == 16 ? &product::dot<16> : &product::dot<4>;
        size_t k = (size_t)inner();
        for (int z = 0; z < d.batch; z++) {
            std::vector<float> x = rows_of(a, from_a, o.ta, d.rows, z),
                               y = rows_of(b, from_b, !o.tb, d.columns, z);
            for (int64_t j = 0; j < d.columns; j++)
                for (int64_t i = 0; i < d.rows; i++)
                    finish(i, j, z, (this->*add)(&x[(size_t)i * k], &y[(size_t)j * k]));
            if (o.end != CUBLASLT_EPILOGUE_BGRADA) continue;
            for (int64_t i = 0; i < d.rows; i++) {
                float sum = 0;
                for (size_t l = 0; l < k; l++) sum += x[(size_t)i * k + l];
                write(d, o.bias, i, sum);
            }
        }
    }
};

} // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = (cublasLtHandle_t)&is_known;
    /* It requires a driver of its own CUDA version. */
    return emu_number("EMU_DRIVER", 13000) >= 13000 ? CUBLAS_STATUS_SUCCESS
                                                    : CUBLAS_STATUS_NOT_INITIALIZED;
}

size_t cublasLtGetVersion()
{
    return 130000;
}

const char *cublasLtGetStatusString(cublasStatus_t s)
{
    return s == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                            : "CUBLAS_STATUS_NOT_SUPPORTED";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *ret, cublasComputeType_t compute,
                                        cudaDataType_t)
{
    bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    *ret = (cublasLtMatmulDesc_t) new operation{
        false, false, tf32, CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL, 0, NULL, NULL};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    delete (operation *)d;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t which,
                                              const void *from, size_t)
{
    operation *o = (operation *)d;
    switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        o->ta = *(const cublasOperation_t *)from == CUBLAS_OP_T;
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_TRANSB:
        o->tb = *(const cublasOperation_t *)from == CUBLAS_OP_T;
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        o->end = *(const cublasLtEpilogue_t *)from;
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        o->bias = *(void *const *)from;
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        o->beside = *(void *const *)from;
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
        o->scale_a = *(const float *const *)from;
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        o->scale_b = *(const float *const *)from;
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM: /* sums are float here */
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        o->beside_step = *(const int64_t *)from;
        return CUBLAS_STATUS_SUCCESS;
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *ret, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t step)
{
    *ret = (cublasLtMatrixLayout_t) new layout{type, (int64_t)rows, (int64_t)columns, step, 1, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    delete (layout *)l;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t which,
                                                const void *from, size_t)
{
    switch (which) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        ((layout *)l)->batch = *(const int32_t *)from;
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        ((layout *)l)->batch_step = *(const int64_t *)from;
        return CUBLAS_STATUS_SUCCESS;
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *ret)
{
    *ret = (cublasLtMatmulPreference_t)&is_known;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void *, size_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t to,
                                              cublasLtMatmulPreference_t, int most,
                                              cublasLtMatmulHeuristicResult_t ret[], int *found)
{
    *found = 0;
    product p = {
        *(operation *)d, *(layout *)a, *(layout *)b, *(layout *)to, NULL, NULL, NULL, 1, 4};
    if (!is_known(p.o.end) || !p.fits()) return CUBLAS_STATUS_NOT_SUPPORTED;
    for (; *found < most && *found < (int)ALGORITHMS; ++*found) {
        ret[*found] = {};
        ret[*found].algo.data[0] = (uint64_t)*found + 1;
        ret[*found].workspaceSize = WORKSPACE * (size_t)*found;
        ret[*found].state = CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t *algorithm,
                                       cublasLtMatmulHeuristicResult_t *ret)
{
    uint64_t which = algorithm->data[0];
    if (which < 1 || which > ALGORITHMS) return CUBLAS_STATUS_INVALID_VALUE;
    ret->workspaceSize = WORKSPACE * (size_t)(which - 1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation_, const void *alpha,
                              const void *from_a, cublasLtMatrixLayout_t a, const void *from_b,
                              cublasLtMatrixLayout_t b, const void *beta, const void *,
                              cublasLtMatrixLayout_t, void *to, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    uint64_t which = algorithm->data[0];
    product p = {*(operation *)operation_,
                 *(layout *)a,
                 *(layout *)b,
                 *(layout *)d,
                 from_a,
                 from_b,
                 to,
                 *(const float *)alpha,
                 which == 1 ? 16 : 4};
    if (!p.fits() || *(const float *)beta != 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (which < 1 || which > ALGORITHMS || workspace_bytes < WORKSPACE * (which - 1))
        return CUBLAS_STATUS_INVALID_VALUE;
    emu_call call("cudaLaunchKernelExC_v11060");
    /* The second algorithm is faster and launches two kernels, like split-K. */
    double ms = which > 1 ? HALVES_MS : MATMUL_MS;
    emu_what what = {EMU_KERNEL, "nvjet_emulated_128x64_algorithm_1", 0, 0};
    if (which > 1) what.name = "nvjet_emulated_64x64_split_in_two_algorithm_2_kernel";
    /* Like the library's kernels for compute capability 9.0: counters in the workspace are cleared
     * first. */
    if (which > 1 &&
        cuMemsetD8Async((CUdeviceptr)workspace, 0, COUNTERS, (CUstream)stream) != CUDA_SUCCESS)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    CUresult r = emu_enqueue((CUstream)stream, ms, what, [=] {
        if (which > 1 && std::any_of((char *)workspace, (char *)workspace + COUNTERS,
                                     [](char c) { return c != 0; })) {
            fprintf(stderr, "emulator: a matmul's counters are not cleared\n");
            return CUDA_ERROR_LAUNCH_FAILED;
        }
        if (which > 1) memset(workspace, 0xff, WORKSPACE);
        if (emu_number("EMU_VERBOSE", 0))
            fprintf(stderr, "emulator: matmul %lld x %lld x %lld\n", (long long)p.d.columns,
                    (long long)p.d.rows, (long long)p.inner());
        p.run();
        return CUDA_SUCCESS;
    });
    what.name = "_ZN8cublasLt19splitKreduce_kernelILi32ELi16EiffffLb1EEEvNS_18cublasSplitKParamsE";
    if (which > 1 && r == CUDA_SUCCESS)
        r = emu_enqueue((CUstream)stream, JOINT_MS, what, [] { return CUDA_SUCCESS; });
    return r == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
