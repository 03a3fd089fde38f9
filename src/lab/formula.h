/* formula.h - parses an arithmetic formula into a tree and evaluates the tree.
 *
 * A formula has numbers, names, + - * /, signs, parentheses, comparisons (< <= > >=: 1 if true,
 * else 0) and the functions of enum formula_kind. The caller passes the names that may be used and,
 * to evaluate, their values. An error is a sentence, the formula, and a caret below the error. */
#ifndef LAB_FORMULA_H
#define LAB_FORMULA_H

#include "base/arena.h"
#include "lab/accumulate.h"

enum { FORMULA_BYTES = 1000, FORMULA_DEPTH = 64, FORMULA_ARGS = 3 };

enum formula_kind {
    FORMULA_NUMBER,
    FORMULA_NAME,
    FORMULA_NEGATE,
    FORMULA_ADD,
    FORMULA_SUB,
    FORMULA_MUL,
    FORMULA_DIV,
    FORMULA_LESS,
    FORMULA_LESS_EQUAL,
    FORMULA_GREATER,
    FORMULA_GREATER_EQUAL,
    FORMULA_FUNCTIONS, /* the kinds from here on are functions */
    FORMULA_EXP = FORMULA_FUNCTIONS,
    FORMULA_LOG,
    FORMULA_SQRT,
    FORMULA_RSQRT,
    FORMULA_TANH,
    FORMULA_ERF,
    FORMULA_RELU,
    FORMULA_GELU,
    FORMULA_GELU_TANH,
    FORMULA_ELU,
    FORMULA_SILU,
    FORMULA_SIGMOID,
    FORMULA_ABS,
    FORMULA_MIN,
    FORMULA_MAX,
    FORMULA_POW,
    FORMULA_WHERE, /* where(c, a, b): a where c > 0, else b */
    FORMULA_KINDS
};

struct formula_node {
    enum formula_kind kind;
    int at, bytes;         /* where the operator, name or number is in the text */
    double number;         /* FORMULA_NUMBER: the value */
    int64_t integer;       /* FORMULA_NUMBER: the value as an integer, valid if is_integer */
    bool is_integer;       /* the number is written as an integer that fits into 64 bits */
    int name;              /* FORMULA_NAME: index of the name */
    int args;              /* number of operands */
    int arg[FORMULA_ARGS]; /* indices of the operands, which are earlier nodes */
};

struct formula {
    const char *text;
    const struct formula_node *node; /* operands precede their users; the last node is the result */
    int nodes;
};

/* A value and its derivative. */
struct formula_dual {
    double x, d;
};

/* The result lives in the arena. ST_USAGE: the text is not a formula with these names. */
enum status formula_parse(struct formula *ret, const char *text, const char *const *names, int n,
                          struct arena *a);
/* Fails with ST_USAGE. The message is the sentence, the formula, and a caret below byte `at`. */
enum status formula_fail(const char *text, int at, const char *format, ...) PRINTF_LIKE(3, 4);
/* The name of a function, or the sign of an operator. */
const char *formula_kind_name(enum formula_kind k);

/* Evaluates in double. min, max and where return one operand and ignore the other. a <= b is
 * computed as !(b < a), so it is true if a or b is NaN. */
double formula_value(const struct formula *f, const double *values);
/* Like formula_value, but ret[i] is the value of node i. */
void formula_values(const struct formula *f, const double *values, double *ret);
/* The value, and the derivative with respect to name number `name`. */
struct formula_dual formula_derivative(const struct formula *f, const double *values, int name);
/* Value and derivative with each operation rounded to fp32 or bf16, and a first-order bound of
 * their errors. */
struct formula_rounded {
    struct formula_dual dual, off; /* the rounded value; the bound */
    bool certain; /* no comparison or kink is so close that rounding may change its side */
};
struct formula_rounded formula_rounded(const struct formula *f, const double *values, int name,
                                       enum number_kind to);
/* Evaluates in integers; / rounds towards zero. ST_USAGE: an overflow, a division by zero, a number
 * that is not an integer, or a function other than min, max, abs and where. Errors in the operand
 * that a where does not choose are ignored. */
enum status formula_integer(const struct formula *f, const int64_t *values, int64_t *ret);

#endif
