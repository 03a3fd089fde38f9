/* op.h - types, attributes and the table of operators made from op_list.h.
 *
 * Tensors are dense and row-major, outermost dimension first, with at most MAX_RANK dimensions;
 * there are no strides. Matmuls transpose by an attribute; attention indexes packed q, k, v. */
#ifndef GRAPH_OP_H
#define GRAPH_OP_H

#include "base/base.h"

#include <math.h>

/* MAX_PARTS: the maximum number of parts of a split tensor. */
enum { MAX_RANK = 4, MAX_IN = 9, MAX_OUT = 7, MAX_PARTS = 4 };

struct graph;
struct node;
struct chain;
struct attr_field;

/* A handle of a value of a graph; 0 is no value. */
typedef struct value {
    int32_t i;
} value;

/* EaMb is an 8-bit float with a bits of exponent and b of mantissa (Micikevicius et al., arXiv
 * 2209.05433): E4M3 up to 448, without infinities; E5M2 up to 57344. QUANTIZE produces them. */
enum dtype { DT_F32, DT_F64, DT_BF16, DT_I32, DT_E4M3, DT_E5M2, DT_COUNT };

struct type {
    enum dtype dtype;
    int rank;
    int64_t dim[MAX_RANK];
};

enum op {
#define OP(name, ...) OP_##name,
#include "graph/op_list.h"
#undef OP
    OP_COUNT
};

enum op_level { LEVEL_PRIMITIVE, LEVEL_LAYER, LEVEL_FUSED };

enum op_flag {
    OP_VIEW = 1,
    OP_INPLACE = 2,
    OP_INPLACE_1 = 4,
    OP_GRAD_ALL = 8,
    OP_NUMERICS = 16,
    OP_WRITES = 32, /* multiplied by the number of outputs that are inputs written in place */
};

/* THE list of operator families; a profile sums time by family. */
enum family {
    FAMILY_MATMUL,
    FAMILY_ATTENTION,
    FAMILY_SOFTMAX,
    FAMILY_NORMS,
    FAMILY_POINTWISE,
    FAMILY_LOSS,
    FAMILY_OPTIMIZER,
    FAMILY_COPIES,
    FAMILY_EMBEDDINGS,
    FAMILY_COMMUNICATION,
    FAMILY_OTHER, /* copies of inputs and results, which belong to no node */
    FAMILY_IDLE,
    FAMILIES,
    /* In an operator's row: the family depends on the scope of the node (profile/family.c). */
    FAMILY_BY_PLACE = FAMILIES
};

/* "matrix products" */
const char *family_name(enum family family);

/* The type that an operator computes in under mixed precision. */
enum policy {
    POLICY_F32,      /* f32 in and out */
    POLICY_BF16,     /* bf16 in and out */
    POLICY_AS_INPUT, /* the type of its first float input */
    /* The wider type of two operands, but the first operand's type if the second is one element or
     * is repeated along leading dimensions. */
    POLICY_WIDER,
    POLICY_ROWS, /* bf16 at fusion=full, else f32: row statistics, operators with an f32 table */
};

/* Numerical options beyond the types, for operators with the flag NUMERICS. */
struct numerics {
    bool tf32;          /* matmuls of f32 operands may round them to TF32 */
    bool deterministic; /* bit-identical in every run: no choice may depend on a measurement */
    bool portable;      /* no kernel that is specific to one compute capability */
};

/* The kind of memory that holds a leaf. Every kind except STORAGE_INPUT and STORAGE_UNIT is a range
 * laid out once, in parameter order; a parameter has the same offset in weights, gradients and
 * moments. A leaf of STORAGE_UNIT is state that lives only while a graph uses it: the planner
 * places the leaf in the arena, and leaves that overlap are placed as one value. */
enum storage {
    STORAGE_INPUT,     /* written by the host before each run */
    STORAGE_WEIGHTS,   /* fp32 master weights */
    STORAGE_GRADIENTS, /* gradients of the weights */
    STORAGE_MOMENT1,   /* AdamW's first moment, SGD's momentum */
    STORAGE_MOMENT2,   /* AdamW's second moment */
    STORAGE_COPY,      /* a bf16 copy of the weights, in the same layout */
    STORAGE_REDUCED,   /* bf16 gradients as ranks sum them, in the same layout */
    STORAGE_PACKED,    /* weights in a matmul's packed layout */
    STORAGE_CACHE,     /* keys and values of earlier positions, while sampling */
    STORAGE_AMAX,      /* amax history of QUANTIZE: the largest magnitudes of the last steps */
    STORAGE_RANDOM,    /* random inputs of a timed-only model: generated once, read in each run */
    STORAGE_STAGED,    /* staged inputs of a whole step; contains no leaves */
    STORAGE_ARENA,     /* values placed by the planner; contains no leaves */
    STORAGE_UNIT,      /* weights or gradients of a unit, of which a rank stores a shard */
    STORAGE_COUNT
};

enum dropout_pattern { DROPOUT_POINTWISE, DROPOUT_ATTENTION };

/* A dropout layer. base/rng.h maps random bytes to elements; threshold 0 keeps all elements. */
struct dropout {
    enum dropout_pattern pattern;
    int threshold; /* 0 ... 255: round(256 p) */
    uint32_t seed;
    uint32_t site; /* the layer's position in the model; every fusion level has the same sites */
};

/* Leaves of a range start at multiples of this many elements. The padding between leaves is always
 * zero, so an operator may process the whole range as one tensor. */
enum { RANGE_ALIGNMENT = 16 };
/* Steps in the amax history of QUANTIZE, including the current one and the next one. */
enum { AMAX_STEPS = 16 };

union attr {
    struct {
        enum storage storage;
        int64_t offset; /* elements from the start of the range */
    } leaf;
    struct {
        double value; /* FILL, SCALE, OFFSET, AT_MOST, CAUSAL_MASK (value of masked elements) */
    } constant;
    struct {
        double value;
        int64_t columns; /* COLUMN_MASK: columns with this index or a higher one become `value` */
    } column_mask;
    struct {
        bool ta, tb;    /* C = op(A) op(B) over the last two dimensions */
        int64_t packed; /* N if B is an output of PACK, else 0 */
        bool tanh;      /* MATMUL_GELU_GRAD: as for gelu */
        bool fast;      /* MATMUL_SCALED: may accumulate with fewer bits than f32 */
    } matmul;
    struct {
        enum dtype to; /* DT_E4M3, DT_E5M2 */
        int first;     /* the scale is 2^-first until a magnitude is known */
        bool tanh;     /* QUANTIZE_GELU and its gradient: as for gelu */
        double eps;    /* QUANTIZE_ADD_LAYERNORM: eps and drop as for norm */
        struct dropout drop;
    } quantize;
    struct {
        bool tb;        /* the weight is (N,K) */
        int64_t packed; /* as for matmul */
        bool tanh;      /* LINEAR_GELU: as for gelu */
        bool keep;      /* LINEAR_GELU: the input of GELU is a second output */
    } linear;
    struct {
        bool tb;      /* the matrix is (N,K) */
        int64_t rows; /* M of the matmuls that read it */
    } pack;
    struct {
        int heads, parts; /* parts: 3 for packed q, k, v, else 1 */
        int kv_heads;     /* heads of each part after the first; 0: as many as the first part */
    } heads;
    struct {
        int64_t columns[MAX_PARTS]; /* of each part; 0 after the last */
    } split;
    struct {
        int heads;    /* ROPE: the first `heads` heads are rotated, later columns are copied */
        bool back;    /* ROPE: rotate in the opposite direction */
        double theta; /* ROPE_TABLE */
    } rope;
    struct {
        bool tanh; /* the tanh approximation instead of erf */
    } gelu;
    struct {
        double eps;
        bool bias;           /* the norm has a bias, so its gradient has dbias */
        struct dropout drop; /* ADD_LAYERNORM: applied to the branch that is added */
    } norm;
    struct dropout drop; /* DROPOUT, DROPOUT_MASK, EMBED_SUM */
    struct {
        int64_t rows; /* EMBED_GRAD_SUM: rows of the table */
    } table;
    struct {
        int64_t vocab; /* later columns are padding, with zero probability and zero gradient */
    } loss;
    struct {
        int heads;
        bool causal;
        struct dropout drop;
        int kv_heads;  /* key and value heads, a divisor of heads; 0: as many as query heads */
        bool unscaled; /* scores are q k^T instead of q k^T / sqrt(D); not in ATTENTION_CACHED */
    } attention;
    struct {
        double scale;
        bool causal;
        struct dropout drop;
    } score; /* SCORE_SOFTMAX and its gradient */
    struct {
        double beta1, beta2, eps, weight_decay;
        int64_t decay_elements; /* weight decay acts on the first decay_elements elements */
    } adamw;
    struct {
        double momentum, weight_decay;
        int64_t decay_elements; /* as for adamw */
    } sgd;
    struct {
        int ranks; /* number of ranks in the collective */
    } group;
    const struct chain *chain; /* in the graph's arena; immutable */
};

/* The number of key and value heads. Query head h uses key and value head h / (heads / kv_heads)
 * (grouped-query attention, Ainslie et al., arXiv 2305.13245). */
static inline int attention_kv_heads(const union attr *a)
{
    return a->attention.kv_heads ? a->attention.kv_heads : a->attention.heads;
}

/* The divisor of the scores of heads with D columns. */
static inline double attention_divisor(const union attr *a, int64_t D)
{
    return a->attention.unscaled ? 1 : sqrt((double)D);
}

/* The minimum work of one execution: FLOPs, and bytes if each byte is read or written once. For a
 * collective, `bytes` are the bytes that a rank sends and receives. */
struct cost {
    double flops, bytes;
};

/* Sets the output types and n->n_out; calls fail() for invalid inputs. `given` is the requested
 * output type if the inputs do not determine it. */
typedef enum status (*shape_fn)(struct node *n, const struct type *in, const struct type *given,
                                struct type *out);
/* Appends the gradient. dout[i] is the adjoint of output i; `no value` means zero. Sets din[i],
 * which is `no value` on entry, if a gradient flows to input i. */
typedef void (*grad_fn)(struct graph *g, const struct node *n, const value *dout, value *din);
/* Appends smaller operators that compute the outputs `out` from `in`. */
typedef void (*expand_fn)(struct graph *g, const struct node *n, const value *in, value *out);
typedef struct cost (*cost_fn)(const struct node *n, const struct type *in, const struct type *out);

struct op_def {
    const char *name; /* "LAYERNORM_GRAD" */
    enum op_level level;
    enum family family;
    int least_in, most_in;
    const struct attr_field *attrs; /* attr.h */
    unsigned flags;
    enum policy policy;
    unsigned f32_inputs; /* bit mask of inputs that are f32 under every policy */
    shape_fn shape;
    grad_fn grad;
    expand_fn expand;
    cost_fn cost;
};

extern const struct op_def op_defs[OP_COUNT];
static inline const struct op_def *op_def(enum op op)
{
    return &op_defs[op];
}
/* The number of leading outputs that are inputs written in place. */
static inline int op_writes(enum op op)
{
    return (int)(op_defs[op].flags / OP_WRITES);
}

int64_t dtype_size(enum dtype dtype);
const char *dtype_name(enum dtype dtype);
bool dtype_is_float(enum dtype dtype);
static inline bool dtype_is_float8(enum dtype dtype)
{
    return dtype == DT_E4M3 || dtype == DT_E5M2;
}

struct type type_of(enum dtype dtype, int rank, const int64_t *dim);
struct type type_scalar(enum dtype dtype); /* one element: rank 1, (1) */
struct type type_1d(enum dtype dtype, int64_t a);
struct type type_2d(enum dtype dtype, int64_t a, int64_t b);
struct type type_3d(enum dtype dtype, int64_t a, int64_t b, int64_t c);
struct type type_4d(enum dtype dtype, int64_t a, int64_t b, int64_t c, int64_t d);
bool type_same(const struct type *a, const struct type *b);
bool type_same_shape(const struct type *a, const struct type *b);
/* Counts too large for int64_t are SIZE_TOO_LARGE (base/checked.h); values of a graph have fewer
 * than VALUE_BYTES_MOST bytes. */
#define VALUE_BYTES_MOST ((int64_t)1 << 44)
int64_t type_elements(const struct type *t);
int64_t range_elements(const struct type *t); /* elements of a leaf in its range, with padding */
int64_t type_bytes(const struct type *t);
int64_t type_columns(const struct type *t); /* the last dimension */
int64_t type_rows(const struct type *t);    /* the product of all other dimensions */
/* Prints "f32 (12,64,128)" into the caller's buffer of TYPE_TEXT bytes and returns it. */
enum { TYPE_TEXT = 96 };
const char *type_text(char *buffer, const struct type *t);

/* The type of row statistics, losses and parameter gradients: f32 if activations are bf16 or f32
 * (which the pass `precision` decides), f64 if they are f64. */
enum dtype dtype_of_statistics(enum dtype activations);
/* An upper limit for the elements of a packed (K,N) matrix, which is padded to 64 x 64 blocks. */
int64_t packed_elements(int64_t K, int64_t N);

/* How the second operand of a pointwise operator is broadcast to the shape of the first. */
enum broadcast {
    BROADCAST_NONE,
    BROADCAST_SCALAR,
    BROADCAST_ROW,
    BROADCAST_TRAILING,
    BROADCAST_BAD
};
/* How b is broadcast to the shape of a. NONE: b has this shape. SCALAR: b has one element. ROW: b
 * has one element per row. TRAILING: b has the last dimensions of a. BAD: b does not fit. */
enum broadcast type_broadcast(const struct type *a, const struct type *b);

#endif
