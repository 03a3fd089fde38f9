/* formula.h - parses an arithmetic formula into a tree and evaluates the tree.
 *
 * A formula has numbers, names, + - * /, signs, parentheses, comparisons (< <= > >=: 1 if true,
 * else 0) and the functions of enum formula_kind. The caller passes the names that may be used and,
 * to evaluate, their values. An error is a sentence, the formula, and a caret below the error. */
#ifndef LAB_FORMULA_H
#define LAB_FORMULA_H

#include "base/arena.h"

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
    int at, bytes;   /* its operator, name or number in the text */
    double number;   /* FORMULA_NUMBER; */
    int64_t integer; /* the same as an integer, */
    bool is_integer; /* if it is written as one that fits */
    int name;        /* FORMULA_NAME: which of the names */
    int args;        /* operands, earlier nodes: */
    int arg[FORMULA_ARGS];
};

struct formula {
    const char *text;
    const struct formula_node *node; /* operands before their users; the last is the result */
    int nodes;
};

/* A value and its derivative. */
struct formula_dual {
    double x, d;
};

/* The result lives in the arena. ST_USAGE: the text is no formula of these names. */
enum status formula_parse(struct formula *ret, const char *text, const char *const *names, int n,
                          struct arena *a);
/* An ST_USAGE error at byte `at`: the sentence, and in further lines the formula and the caret. */
enum status formula_fail(const char *text, int at, const char *format, ...) PRINTF_LIKE(3, 4);
/* The name of a function, or the sign of an operator. */
const char *formula_kind_name(enum formula_kind k);

/* In double. Only the chosen side of min, max and where contributes; a <= b is not b < a. */
double formula_value(const struct formula *f, const double *values);
/* The value of every node. */
void formula_values(const struct formula *f, const double *values, double *ret);
/* The value, and the derivative with respect to name number `name`. */
struct formula_dual formula_derivative(const struct formula *f, const double *values, int name);
/* In integers: / rounds towards zero; overflow, a division by zero, and functions other than min,
 * max, abs and where are errors, unless where does not choose their side. */
enum status formula_integer(const struct formula *f, const int64_t *values, int64_t *ret);

#endif
