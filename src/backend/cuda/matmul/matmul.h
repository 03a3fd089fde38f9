/* matmul.h - matmuls on a GPU: their description, cuBLASLt, and the choice of a variant.
 *
 * cuBLASLt is column-major: our C (M,N) is the library's C (N,M), our A is the library's B, and our
 * B is the library's A. The flags `ta` and `tb` change places, too. */
#ifndef BACKEND_CUDA_MATMUL_MATMUL_H
#define BACKEND_CUDA_MATMUL_MATMUL_H

#include "backend/cuda/runtime/cublaslt.h"
#include "backend/cuda/runtime/driver.h"
#include "backend/cuda/runtime/launch.h"

enum {
    /* In bytes, of every operand. Parameters start at multiples of 16 elements. */
    MATMUL_ALIGNMENT = 32,
    MATMUL_WORKSPACE_ALIGN = 256,
};

/* Applied to the sums after the bias was added, before they are stored. */
enum matmul_epilogue {
    EPILOGUE_STORE,
    EPILOGUE_GELU,
    EPILOGUE_GELU_KEEP, /* a second output keeps the input of GELU */
    EPILOGUE_GELU_GRAD, /* multiplies by the derivative of GELU at a third input */
    EPILOGUE_SUM,       /* a second output is the sum over the rows of b */
};

/* A kind of matmul: everything that the choice of an algorithm depends on. */
struct matmul {
    int64_t M, N, K, batch;
    bool ta, tb, tf32;
    enum dtype in, in_b, out; /* in_b differs from in only if both are 8-bit types */
    bool fast;                /* 8-bit inputs: sums need not be kept in f32 */
    bool bias;                /* N elements */
    enum dtype bias_type;     /* if f32, the library reads a copy of the output's type */
    enum matmul_epilogue epilogue;
    bool erf;           /* exact GELU, which the library does not have */
    bool deterministic; /* nothing may depend on measured times */
};

/* Describes a call of `op` as a matmul. Returns false if the library does not support the matmul or
 * if the weights are packed. */
bool gemm_of(enum op op, const struct kernel_call *c, struct matmul *ret);
/* Like gemm_of; also false if cuBLASLt is less accurate than the reference demands. */
bool matmul_library_fits(enum op op, const struct kernel_call *c, struct matmul *ret);
bool matmul_has_bias(enum op op, const struct kernel_call *c);
/* True for 8-bit operands. Each of them has a scale and is contiguous along K; M, N and K are
 * multiples of 16. */
bool matmul_is_scaled(const struct matmul *p);
bool matmul_has_second(const struct matmul *p);
/* "bf16 (8192,768) x (768,2304) tb -> bf16, f32 bias": the key of a matmul in tuning tables. */
enum { MATMUL_TEXT = 160 };
void matmul_text(const struct matmul *p, char ret_text[MATMUL_TEXT]);

/* matmul_padding.c: our own kernels before and after a matmul. The library is several times slower
 * if rows are not multiples of 16 bytes, so large matrices are padded with zeros. */
/* The matmul that the library computes: `p`, or `p` with dimensions rounded up. */
struct matmul matmul_padded(const struct matmul *p);
/* Offsets of the copies in scratch; COPY_NONE if the matrix itself is used. */
enum { COPY_NONE = -1 };
struct matmul_copies {
    int64_t bias, a, b, out, bytes;
};
struct matmul_copies matmul_copies(enum op op, const struct kernel_call *c);
/* Bytes that padding reads and writes. */
int64_t matmul_copied_bytes(const struct matmul *p);
/* Kernels before and after a call, for every operator that may need them. */
extern const struct cuda_row matmul_before[], matmul_after[];

/* The library's descriptors of a matmul. */
struct matmul_parts {
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, out;
};
enum status matmul_open(struct matmul_parts *parts, const struct matmul *p);
void matmul_close(struct matmul_parts *parts);
/* The library's suggestions, best guess first; returns their number, 0 if there are none. */
enum { MATMUL_CANDIDATES = 8 };
int matmul_candidates(const struct matmul_parts *parts, int64_t workspace_bytes, int most,
                      cublasLtMatmulHeuristicResult_t *ret);

struct matmul_memory {
    const void *a, *b;
    const void *scale_a, *scale_b; /* f32 numbers; NULL: 1 */
    void *bias;                    /* input, or with EPILOGUE_SUM the output for the sums */
    void *second; /* the matrix that EPILOGUE_GELU_KEEP writes and EPILOGUE_GELU_GRAD reads */
    void *out, *workspace;
    int64_t workspace_bytes;
};
enum status matmul_run(const struct matmul_parts *parts, const cublasLtMatmulAlgo_t *algorithm,
                       const struct matmul_memory *m, CUstream stream);

struct matmul_choice {
    cublasLtMatmulAlgo_t algorithm;
    int64_t workspace_bytes; /* the workspace that the algorithm needs */
};
/* The limit on the library's workspace. */
int64_t matmul_workspace_bytes(const struct kernel_call *c);

/* matmul_decide.c: decides which variant computes a call. The decision depends only on the
 * arguments. */
struct matmul_decision {
    char key[MATMUL_TEXT];    /* key in the tuning table; empty if neither variant applies */
    bool library;             /* cuBLASLt can compute the call */
    const struct kernel *own; /* our own row for the call; NULL: there is none */
    bool own_first;           /* our own row is faster than cuBLASLt */
    bool separate_first;      /* a matmul and a separate epilogue kernel are faster than both */
    const char *algorithm;    /* of cuBLASLt, from the table; NULL: its first guess */
};
/* Without an entry in the table, matmul_decide prefers our own row for matmuls with GELU and for
 * long plain matmuls, if rows have the pitch of matmul_hopper_pitch or the library does not fit.
 * For other matmuls it prefers the library's first guess, with a fused epilogue. deterministic=true
 * uses neither our own row nor a fused epilogue. */
struct matmul_decision matmul_decide(enum op op, const struct kernel_call *c);
/* True if the matmul is so large that our own row may be faster. */
bool matmul_is_long(const struct matmul *p);
/* The names of the variants in tuning tables: "cublaslt", "wgmma", "separate". */
extern const char MATMUL_LIBRARY[], MATMUL_OWN[], MATMUL_SEPARATE[];
/* Digest of the sources, constants and grids that row k would compile and launch for call c. */
void matmul_launch_digest(const struct kernel *k, const struct kernel_call *c,
                          char ret[TUNING_LAUNCH]);

/* Kernels with WGMMA, for compute capability 9.0 only: matmul_hopper.c with GELU in the epilogue,
 * matmul_hopper_plain.c without an epilogue. Returns the row for a call, or NULL if none fits. */
const struct kernel *matmul_hopper_row(int op, const struct kernel_call *c);
/* Like gemm_of, for these kernels. */
bool matmul_hopper_of(enum op op, const struct kernel_call *c, struct matmul *ret);
bool matmul_hopper_plain_of(const struct kernel_call *c, struct matmul *ret);
/* Tiles and groups worth measuring for a plain matmul on a GPU of `processors` SMs, beginning with
 * the kernel's own choice; returns their number. The tuning table's entry selects one of them. */
enum { MATMUL_TILES = 12 };
int matmul_hopper_tiles(const struct matmul *p, int64_t processors,
                        struct tuning_tile ret[MATMUL_TILES]);
/* True if rows of both operands are multiples of 32 bytes, a sector of L2. If they are not, the
 * kernel takes 1.2 to 1.7 times as long as the library (docs/log/gpu.md). */
bool matmul_hopper_pitch(const struct matmul *p);

#endif
