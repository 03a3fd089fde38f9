/* attr.h - the attributes of each operator as data: names, types and offsets in union attr.
 *
 * A schema is a list of fields that ends with name == NULL; the operator's row in op_list.h
 * names it. Printing, comparison and documentation use the schema. */
#ifndef GRAPH_ATTR_H
#define GRAPH_ATTR_H

#include "graph/op.h"

struct str;

enum attr_kind {
    ATTR_BOOL,
    ATTR_INT,
    ATTR_INT64,
    ATTR_REAL,
    ATTR_DTYPE,
    ATTR_STORAGE,
    ATTR_DROPOUT,
    ATTR_PARTS, /* int64_t[MAX_PARTS], 0 after the last */
    ATTR_CHAIN
};

struct attr_field {
    const char *name;
    enum attr_kind kind;
    size_t offset; /* in union attr */
    /* ATTR_BOOL: the word printed for false; NULL: nothing is printed. */
    const char *otherwise;
    /* The value is printed even if it is 0, the default; other fields are not printed if they are
     * 0. */
    bool always;
};

/* clang-format off */
#define ATTR_SCHEMAS(X)                                                                            \
    X(none) X(leaf) X(constant) X(column_mask) X(matmul) X(matmul_gelu) X(matmul_scaled)           \
    X(quantize) X(quantize_gelu) X(quantize_norm) X(linear) X(linear_gelu) X(pack) X(heads)        \
    X(split) X(rope) X(rope_table) X(gelu) X(norm) X(norm_dropout) X(dropout) X(table) X(loss)     \
    X(attention) X(score) X(adamw) X(sgd) X(group) X(chain)
/* clang-format on */
#define X(name) extern const struct attr_field attrs_##name[];
ATTR_SCHEMAS(X)
#undef X

size_t attr_size(enum attr_kind kind);
/* Prints every attribute that differs from its default: " [ta heads 12 eps 1e-05 tf32]". */
void attr_print(enum op op, const union attr *attr, const struct numerics *n, struct str *s);
/* True if all attributes are equal, including the steps of a chain. If `sites` is false, the sites
 * of dropouts may differ, because they do not change the amount of work. */
bool attr_same(enum op op, const union attr *a, const union attr *b, bool sites);
bool numerics_same(const struct numerics *a, const struct numerics *b);

#endif
