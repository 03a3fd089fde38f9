/* cases.h - THE list of operator cases: what every kernel, gradient rule and expansion is tried on.
 *
 * A case is one node: an operator, its attributes, the types of its inputs and what to fill them with.
 * DT_F32 in a row stands for whichever float type is under test. */
#ifndef CHECK_CASES_H
#define CHECK_CASES_H

#include "graph/op.h"

struct arena;

enum fill {
    FILL_NORMAL,   /* standard normal */
    FILL_POSITIVE, /* between 0.5 and 1.5 */
    FILL_WIDE,     /* ten times standard normal */
    FILL_MASKED,   /* standard normal, every third element of a row minus infinity */
    FILL_SPIKED,   /* standard normal; of some rows in the first half, two thirds x times that */
    FILL_SUNK, /* packed q, k, v of heads of |x| columns; scores of the last 200 keys are minus infinity in
                      float, or, where x is negative, of all but ten keys in the middle */
    FILL_CONSTANT, /* x everywhere */
    FILL_IDS,      /* integers from 0 to below x */
    FILL_RESULT    /* what another operator, of the same attributes, makes of other inputs */
};

struct case_input {
    struct type type;
    enum fill fill;
    double x;
    bool wide;  /* stays f32 where the type under test is bf16 */
    bool fixed; /* no gradient flows to it */
    /* FILL_RESULT */
    enum op of;
    int of_out, of_n_in, of_in[MAX_IN];
};

struct op_case {
    enum op op;
    const char *what; /* tells apart the cases of one operator */
    union attr attr;
    struct numerics numerics;
    struct case_input in[MAX_IN]; /* up to the first of rank 0 */
    struct type given;            /* rank 0: the inputs decide */
    bool given_exact;             /* its dtype is meant as it stands */
    bool given_wide;              /* it stays f32 where the type under test is bf16 */
    int loss_outputs;             /* outputs through which a gradient flows; 0: only the first */
    /* NULL, or why differences of the outputs say nothing about the gradient here. */
    const char *no_differences;
    /* Relative error by norm of all outputs where this type is under test, where the defaults of
     * check.c are not enough, and why. */
    double tolerance[DT_COUNT];
    const char *reason;
};

/* Number i of the list, NULL after the last. */
const struct op_case *case_at(int i);

int case_inputs(const struct op_case *c);

/* One filled case: float inputs as doubles that are exact in the types of `dtype`. */
struct case_data {
    const struct op_case *c;
    void *in[MAX_IN]; /* double *, or int32_t * */
};

/* The types of input i and of `given` when the float type under test is `dtype`. */
struct type case_type(const struct op_case *c, int i, enum dtype dtype);
struct type case_given(const struct op_case *c, enum dtype dtype);
/* Fills the inputs of case number i, the same at every call. */
enum status case_fill(int i, enum dtype dtype, struct arena *a, struct case_data *ret_data);
/* Input i in its type: the bytes that a kernel reads. */
enum status case_copy(const struct case_data *data, int i, enum dtype dtype, struct arena *a,
                      void **ret_bytes);
/* The node of the case and its output types; words why if the types do not go together. */
enum status case_node(const struct op_case *c, enum dtype dtype, struct node *ret_node,
                      struct type *ret_in, struct type *ret_out);

#endif
