/* op.h - types, attributes and the table of operators made from op_list.h.
 *
 * Shapes are dense, row-major, outermost dimension first, at most MAX_RANK dimensions; there are no
 * strides. A transpose is an attribute of the product, packed q, k, v are indexed by attention. */
#ifndef GRAPH_OP_H
#define GRAPH_OP_H

#include "base/base.h"

/* MAX_PARTS: what a tensor is split into, and results that leave a chain. */
enum { MAX_RANK = 4, MAX_IN = 9, MAX_OUT = 7, MAX_PARTS = 4 };

struct graph;
struct node;
struct chain;
struct attr_field;

/* A handle of one value of a graph; 0 is no value. */
typedef struct value {
    int32_t i;
} value;

/* E4M3 and E5M2 are floats of 8 bits with so many of exponent and mantissa (Micikevicius et al., arXiv 2209.05433): up to 448,
 * without infinities, and up to 57344. They are operands of products alone, as QUANTISE makes them. */
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
    OP_WRITES = 8,
    OP_WRITES_3 = 16,
    OP_WRITES_4 = 32,
    OP_GRAD_ALL = 64,
    OP_NUMERICS = 128,
    OP_WRITES_2 = 256,
};

/* THE list of families that a profile sums time by. */
enum family {
    FAMILY_PRODUCTS,
    FAMILY_ATTENTION,
    FAMILY_SOFTMAX,
    FAMILY_NORMS,
    FAMILY_POINTWISE,
    FAMILY_LOSS,
    FAMILY_OPTIMIZER,
    FAMILY_COPIES,
    FAMILY_EMBEDDINGS,
    FAMILY_OTHER, /* of no node: inputs and results being copied */
    FAMILY_IDLE,
    FAMILIES,
    /* Of an operator's row: the family depends on the scope that the node stands in (profile/family.c). */
    FAMILY_BY_PLACE = FAMILIES
};

/* "matrix products" */
const char *family_name(enum family family);

/* The type that an operator works in under mixed precision. */
enum policy {
    POLICY_F32,      /* f32 in and out */
    POLICY_BF16,     /* bf16 in and out */
    POLICY_AS_INPUT, /* the type of its first float input */
    POLICY_WIDER, /* the wider type of two operands, but for a vector or number that is repeated */
    POLICY_ROWS, /* bf16 at `full`, f32 below it: statistics of rows, and what meets a table in f32 */
};

/* What the types leave open, for operators with the flag NUMERICS. */
struct numerics {
    bool tf32;          /* products of f32 operands may round them to TF32 */
    bool deterministic; /* the same bits in every run: no choice may depend on a measurement */
    bool portable;      /* no kernel that is for one compute capability of GPUs alone */
};

/* Where a leaf lives. All but inputs are ranges laid out once, in parameter order; the same parameter
 * has the same offset in weights, gradients and moments. */
enum storage {
    STORAGE_INPUT,     /* fed before each run */
    STORAGE_WEIGHTS,   /* fp32 master weights */
    STORAGE_GRADIENTS, /* their gradients */
    STORAGE_MOMENT1,   /* AdamW's first moment, SGD's momentum */
    STORAGE_MOMENT2,   /* AdamW's second moment */
    STORAGE_COPY,      /* the weights once more in bf16, of the same layout */
    STORAGE_PACKED,    /* weights in the order in which a product wants them */
    STORAGE_CACHE,     /* keys and values of earlier positions, while sampling */
    STORAGE_AMAX,      /* the largest magnitudes that QUANTISE met in the last steps */
    STORAGE_DRAWN,     /* what a model that is only timed works on: drawn once, read in each run */
    STORAGE_STAGED,    /* inputs of a whole step on their way to its runs; no leaf lives here */
    STORAGE_ARENA,     /* everything that the planner places; no leaf lives here */
    STORAGE_COUNT
};

enum dropout_pattern { DROPOUT_POINTWISE, DROPOUT_ATTENTION };

/* base/rng.h says which byte belongs to which element. A threshold of 0 keeps everything. */
struct dropout {
    enum dropout_pattern pattern;
    int threshold; /* 0 ... 255: round(256 p) */
    uint32_t seed;
    uint32_t site; /* the place in the model, the same at every rung */
};

/* Leaves of a range start at multiples of this many elements. What lies between them is zero and
 * stays zero, so an operator may take the whole range as one tensor. */
enum { RANGE_ALIGNMENT = 16 };
/* Steps of which QUANTISE keeps the largest magnitude, the one that runs and the one to come included. */
enum { AMAX_STEPS = 16 };

union attr {
    struct {
        enum storage storage;
        int64_t offset; /* elements from the start of the range */
    } leaf;
    struct {
        double value; /* FILL, SCALE, OFFSET, AT_MOST, CAUSAL_MASK (what masked elements become) */
    } constant;
    struct {
        double value;
        int64_t columns; /* COLUMN_MASK: columns from here on become `value` */
    } column_mask;
    struct {
        bool ta, tb;    /* C = op(A) op(B) over the last two dimensions */
        int64_t packed; /* 0, or N: B is what PACK made of it */
        bool tanh;      /* MATMUL_GELU_GRAD: as gelu's */
        bool fast;      /* MATMUL_SCALED: sums may be kept in fewer bits than f32 has */
    } matmul;
    struct {
        enum dtype to; /* DT_E4M3, DT_E5M2 */
        int first;     /* the scale is 2^-first as long as no magnitude is known */
        bool tanh;     /* QUANTISE_GELU and its gradient: as gelu's */
        double eps;    /* QUANTISE_ADD_LAYERNORM: as norm's, and so is the next */
        struct dropout drop;
    } quantise;
    struct {
        bool tb;        /* the weight is (N,K) */
        int64_t packed; /* as matmul's */
        bool tanh;      /* LINEAR_GELU: as gelu's */
        bool keep;      /* LINEAR_GELU: what GELU was taken of is an output, too */
    } linear;
    struct {
        bool tb;      /* the matrix is (N,K) */
        int64_t rows; /* M of the products that it is for */
    } pack;
    struct {
        int heads, parts; /* parts: 3 for packed q, k, v, else 1 */
        int kv_heads;     /* of every part but the first; 0: as many as of the first */
    } heads;
    struct {
        int64_t columns[MAX_PARTS]; /* of each part; 0 behind the last */
    } split;
    struct {
        int heads; /* ROPE: so many heads from the first column on are turned, the columns behind are not */
        bool back;    /* ROPE: the other way round */
        double theta; /* ROPE_TABLE */
    } rope;
    struct {
        bool tanh; /* the tanh approximation instead of erf */
    } gelu;
    struct {
        double eps;
        bool bias;           /* the norm has a bias, so its gradient has one too */
        struct dropout drop; /* ADD_LAYERNORM: on the branch that is added */
    } norm;
    struct dropout drop; /* DROPOUT, DROPOUT_MASK, EMBED_SUM */
    struct {
        int64_t rows; /* EMBED_GRAD_SUM: of the table */
    } table;
    struct {
        int64_t vocab; /* columns from here on are padding: no probability, no gradient */
    } loss;
    struct {
        int heads;
        bool causal;
        struct dropout drop;
        int kv_heads; /* of keys and values, a divisor of heads; 0: as many as of queries */
    } attention;
    struct {
        double scale;
        bool causal;
        struct dropout drop;
    } score; /* SCORE_SOFTMAX and its gradient */
    struct {
        double beta1, beta2, eps, weight_decay;
        int64_t decay_elements; /* weight decay acts on the first so many elements */
    } adamw;
    struct {
        double momentum, weight_decay;
        int64_t decay_elements; /* as adamw's */
    } sgd;
    const struct chain *chain; /* of the graph's arena; never changed */
};

/* Heads of keys and values: query head h reads number h / (heads / kv_heads) of them (grouped-query attention,
 * Ainslie et al., arXiv 2305.13245). */
static inline int attention_kv_heads(const union attr *a)
{
    return a->attention.kv_heads ? a->attention.kv_heads : a->attention.heads;
}

/* What one execution does at least: arithmetic, and bytes read and written once. */
struct cost {
    double flops, bytes;
};

/* Sets the output types and n->n_out. `given` is the type asked for where the inputs do not decide
 * it. Words its failure. */
typedef enum status (*shape_fn)(struct node *n, const struct type *in, const struct type *given,
                                struct type *out);
/* dout[i] is the adjoint of output i (no value: none came); sets din[i], or leaves no value where
 * nothing flows. Appends to the graph. */
typedef void (*grad_fn)(struct graph *g, const struct node *n, const value *dout, value *din);
/* Appends smaller operators that compute the outputs from `in`. */
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
    unsigned f32_inputs; /* a mask of inputs that are f32 whatever the policy says */
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
/* How many leading outputs are inputs written in place. */
static inline int op_writes(enum op op)
{
    unsigned flags = op_defs[op].flags;
    if (flags & OP_WRITES_4) return 4;
    if (flags & OP_WRITES_3) return 3;
    return flags & OP_WRITES_2 ? 2 : flags & OP_WRITES ? 1 : 0;
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
int64_t type_elements(const struct type *t);
int64_t range_elements(const struct type *t); /* what a leaf takes of its range, padding included */
int64_t type_bytes(const struct type *t);
int64_t type_columns(const struct type *t); /* the last dimension */
int64_t type_rows(const struct type *t);    /* all others */
/* "f32 (12,64,128)"; the buffer belongs to the caller (TYPE_TEXT bytes). */
enum { TYPE_TEXT = 96 };
const char *type_text(char *buffer, const struct type *t);

/* Activations and gradients of them are bf16 or f32, as the pass `precision` decides; statistics of
 * rows, losses and gradients of parameters are f32 then, and f64 where everything is. */
enum dtype dtype_of_statistics(enum dtype activations);
/* Elements of a packed (K,N) matrix, at most: room for blocks of 64 by 64. */
int64_t packed_elements(int64_t K, int64_t N);

/* How the second operand of a pointwise operator meets the first. */
enum broadcast {
    BROADCAST_NONE,
    BROADCAST_SCALAR,
    BROADCAST_ROW,
    BROADCAST_TRAILING,
    BROADCAST_BAD
};
/* NONE: same shape. SCALAR: one element. ROW: same shape but 1 column: one per row. TRAILING: the
 * last dimensions of a: repeated over the leading ones. */
enum broadcast type_broadcast(const struct type *a, const struct type *b);

#endif
