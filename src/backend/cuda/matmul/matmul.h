/* matmul.h - matrix products by cuBLASLt: what a call asks for, and how the library is told. Private to
 * backend/cuda.
 *
 * The library counts columns first. A row-major C (M,N) is its (N,M), so its A is our B and its B our A, both
 * with the transposes that they have. */
#ifndef BACKEND_CUDA_MATMUL_MATMUL_H
#define BACKEND_CUDA_MATMUL_MATMUL_H

#include "backend/cuda/runtime/cublaslt.h"
#include "backend/cuda/runtime/driver.h"
#include "backend/cuda/runtime/launch.h"

enum {
    MATMUL_ALIGNMENT = 32, /* of every operand: parameters start at multiples of 16 elements */
    MATMUL_WORKSPACE_ALIGN = 256,
};

/* What is done with the sums before they are stored, after the bias was added. */
enum matmul_epilogue {
    EPILOGUE_STORE,
    EPILOGUE_GELU,
    EPILOGUE_GELU_KEEP, /* a second output keeps what GELU was taken of */
    EPILOGUE_GELU_GRAD, /* times the slope of GELU at a third input */
    EPILOGUE_SUM,       /* a second output is the sum over the rows of b */
};

/* One kind of product: everything that an algorithm depends on. */
struct matmul {
    int64_t M, N, K, batch;
    bool ta, tb, tf32;
    enum dtype in, in_b, out; /* in_b is another than in where both are of 8 bits */
    bool fast;                /* of 8 bits: sums need not be kept in f32 */
    bool bias;                /* of N elements, of the type of the output */
    enum matmul_epilogue epilogue;
    bool erf;           /* GELU without its approximation, which the library has not */
    bool deterministic; /* nothing is used that timing decided */
};

/* False where the library does not multiply such types, and for packed weights. `op` is what the call is of. */
bool gemm_of(enum op op, const struct kernel_call *c, struct matmul *ret);
bool matmul_has_bias(enum op op, const struct kernel_call *c);
/* Bytes along K, with a scale for each operand; the rows of both matrices and K are multiples of 16. */
bool matmul_is_scaled(const struct matmul *p);
bool matmul_has_second(const struct matmul *p);
/* "bf16 (8192,768) x (768,2304) tb -> bf16, bias": its key in tuning tables. */
enum { MATMUL_TEXT = 160 };
void matmul_text(const struct matmul *p, char ret_text[MATMUL_TEXT]);

/* matmul_copies.c: what kernels of ours do before and after a product. The library is several times slower where
 * rows are no multiple of 16 bytes; large matrices of such rows are multiplied as copies, with zeros behind the
 * columns and rows that there are. */
/* What the library is asked for: `p`, or that with lengths rounded up. */
struct matmul matmul_padded(const struct matmul *p);
/* Where in scratch the copies stand; COPY_NONE: the matrix itself is used. */
enum { COPY_NONE = -1 };
struct matmul_copies {
    int64_t bias, a, b, out, bytes;
};
struct matmul_copies matmul_copies(enum op op, const struct kernel_call *c);
/* Bytes that padding reads and writes. */
int64_t matmul_copied_bytes(const struct matmul *p);
/* The launches of a call, for every operator that may need some. */
extern const struct cuda_row matmul_before[], matmul_after[];

/* A product as the library has it. */
struct matmul_parts {
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, out;
};
enum status matmul_open(struct matmul_parts *parts, const struct matmul *p);
void matmul_close(struct matmul_parts *parts);
/* What the library proposes, best guess first; returns how many, 0 if it has nothing. */
enum { MATMUL_CANDIDATES = 8 };
int matmul_candidates(const struct matmul_parts *parts, int64_t workspace_bytes, int most,
                      cublasLtMatmulHeuristicResult_t *ret);

struct matmul_memory {
    const void *a, *b;
    const void *scale_a, *scale_b; /* f32 numbers; NULL: 1 */
    void *bias;                    /* or where EPILOGUE_SUM leaves the sums */
    void *beside; /* the matrix that EPILOGUE_GELU_KEEP writes and EPILOGUE_GELU_GRAD reads */
    void *out, *workspace;
    int64_t workspace_bytes;
};
enum status matmul_run(const struct matmul_parts *parts, const cublasLtMatmulAlgo_t *algorithm,
                       const struct matmul_memory *m, CUstream stream);

struct matmul_choice {
    cublasLtMatmulAlgo_t algorithm;
    int64_t workspace_bytes; /* that it needs */
};
/* What the library is asked to use at most. */
int64_t matmul_workspace_bytes(const struct kernel_call *c);

/* matmul_decide.c: which variant computes a call; pure. */
struct matmul_decision {
    char key[MATMUL_TEXT];    /* of the question; empty: no variant below does this */
    bool library;             /* cuBLASLt does it */
    const struct kernel *own; /* the row of our own that does it; NULL: none */
    bool own_first;           /* and is faster */
    bool separate_first;      /* a matmul and a kernel for its epilogue are faster than both */
    const char *algorithm;    /* of the library, from the table; NULL: its first guess */
};
/* Where the table has no entry for it, and with deterministic=true, which uses none: our own row for matmuls with GELU
 * and for long plain ones (not with deterministic=true), else the library's first guess; as one with the epilogue. */
struct matmul_decision matmul_decide(enum op op, const struct kernel_call *c);
/* Of so many operations that measuring pays. */
bool matmul_is_long(const struct matmul *p);
/* "cublaslt", "wgmma", "separate" in tables. */
extern const char MATMUL_LIBRARY[], MATMUL_OWN[], MATMUL_SEPARATE[];
/* Digest of what a row of launches would compile and launch for that call: texts, constants, grids. */
void matmul_launch_digest(const struct kernel *k, const struct kernel_call *c,
                          char ret[TUNING_LAUNCH]);

/* matmul_hopper.c: products with GELU at the end by the products of warpgroups, of compute capability 9.0 alone, and
 * matmul_plain.c: plain ones. */
/* The row for that call; NULL: there is none, or the call forbids it. */
const struct kernel *matmul_hopper_row(int op, const struct kernel_call *c);
/* As gemm_of, for a call that has a row. */
bool matmul_hopper_of(enum op op, const struct kernel_call *c, struct matmul *ret);
bool matmul_hopper_plain_of(const struct kernel_call *c, struct matmul *ret);

#endif
