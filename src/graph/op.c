#include "graph/op.h"

#include "base/checked.h"
#include "graph/attr.h"
#include "graph/op_rules.h"

#include <stdio.h>
#include <string.h>

#define VIEW         OP_VIEW
#define INPLACE      OP_INPLACE
#define INPLACE_1    OP_INPLACE_1
#define WRITES(n)    ((n)*OP_WRITES)
#define GRAD_ALL     OP_GRAD_ALL
#define NUMERICS     OP_NUMERICS
#define IN(i)        (1u << (i))
/* op_rules.h also declares functions with these two names, which are never defined. */
#define no_gradient  NULL
#define no_expansion NULL

const struct op_def op_defs[OP_COUNT] = {
#define OP(name, level, family, least, most, attrs, flags, policy, f32, shape, grad, expand, cost) \
    [OP_##name] = {                                                                                \
        #name,           LEVEL_##level, FAMILY_##family, least, most,   attrs_##attrs, flags,      \
        POLICY_##policy, f32,           shape,           grad,  expand, cost},
#include "graph/op_list.h"
#undef OP
};

static const char *const family_names[FAMILIES + 1] = {
    [FAMILY_MATMUL] = "matrix products",   [FAMILY_ATTENTION] = "attention",
    [FAMILY_SOFTMAX] = "softmax",          [FAMILY_NORMS] = "norms",
    [FAMILY_POINTWISE] = "pointwise",      [FAMILY_LOSS] = "loss",
    [FAMILY_OPTIMIZER] = "optimizer",      [FAMILY_COPIES] = "copies and casts",
    [FAMILY_EMBEDDINGS] = "embeddings",    [FAMILY_COMMUNICATION] = "communication",
    [FAMILY_OTHER] = "inputs and results", [FAMILY_IDLE] = "idle",
    [FAMILY_BY_PLACE] = "by place",
};

const char *family_name(enum family family)
{
    return family_names[family];
}

static const struct {
    const char *name;
    int64_t size;
    bool is_float;
} dtypes[DT_COUNT] = {
    [DT_F32] = {"f32", 4, true},  [DT_F64] = {"f64", 8, true},   [DT_BF16] = {"bf16", 2, true},
    [DT_I32] = {"i32", 4, false}, [DT_E4M3] = {"e4m3", 1, true}, [DT_E5M2] = {"e5m2", 1, true},
};

int64_t dtype_size(enum dtype dtype)
{
    return dtypes[dtype].size;
}

const char *dtype_name(enum dtype dtype)
{
    return dtypes[dtype].name;
}

bool dtype_is_float(enum dtype dtype)
{
    return dtypes[dtype].is_float;
}

enum dtype dtype_of_statistics(enum dtype activations)
{
    return activations == DT_F64 ? DT_F64 : DT_F32;
}

int64_t packed_elements(int64_t K, int64_t N)
{
    enum { BLOCK = 64 };
    return round_up(K, BLOCK) * round_up(N, BLOCK);
}

struct type type_of(enum dtype dtype, int rank, const int64_t *dim)
{
    struct type t = {.dtype = dtype, .rank = rank};
    memcpy(t.dim, dim, sizeof(int64_t) * (size_t)rank);
    return t;
}

struct type type_scalar(enum dtype dtype)
{
    return type_1d(dtype, 1);
}

struct type type_1d(enum dtype dtype, int64_t a)
{
    return (struct type){dtype, 1, {a}};
}

struct type type_2d(enum dtype dtype, int64_t a, int64_t b)
{
    return (struct type){dtype, 2, {a, b}};
}

struct type type_3d(enum dtype dtype, int64_t a, int64_t b, int64_t c)
{
    return (struct type){dtype, 3, {a, b, c}};
}

struct type type_4d(enum dtype dtype, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct type){dtype, 4, {a, b, c, d}};
}

bool type_same_shape(const struct type *a, const struct type *b)
{
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

bool type_same(const struct type *a, const struct type *b)
{
    return a->dtype == b->dtype && type_same_shape(a, b);
}

int64_t type_elements(const struct type *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) n = size_mul(n, t->dim[i]);
    return n;
}

int64_t range_elements(const struct type *t)
{
    return size_round_up(type_elements(t), RANGE_ALIGNMENT);
}

int64_t type_bytes(const struct type *t)
{
    return size_mul(type_elements(t), dtype_size(t->dtype));
}

int64_t type_columns(const struct type *t)
{
    return t->rank ? t->dim[t->rank - 1] : 1;
}

int64_t type_rows(const struct type *t)
{
    return type_elements(t) / type_columns(t);
}

const char *type_text(char *buffer, const struct type *t)
{
    int n = snprintf(buffer, TYPE_TEXT, "%s (", dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        n += snprintf(buffer + n, (size_t)(TYPE_TEXT - n), "%s%lld", i ? "," : "",
                      (long long)t->dim[i]);
    snprintf(buffer + n, (size_t)(TYPE_TEXT - n), ")");
    return buffer;
}

static bool is_per_row(const struct type *a, const struct type *b)
{
    if (a->rank != b->rank || b->dim[b->rank - 1] != 1) return false;
    for (int i = 0; i + 1 < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

static bool is_trailing(const struct type *a, const struct type *b)
{
    if (b->rank > a->rank) return false;
    for (int i = 1; i <= b->rank; i++)
        if (a->dim[a->rank - i] != b->dim[b->rank - i]) return false;
    return true;
}

enum broadcast type_broadcast(const struct type *a, const struct type *b)
{
    if (type_same_shape(a, b)) return BROADCAST_NONE;
    if (type_elements(b) == 1) return BROADCAST_SCALAR;
    if (is_per_row(a, b)) return BROADCAST_ROW;
    if (is_trailing(a, b)) return BROADCAST_TRAILING;
    return BROADCAST_BAD;
}
