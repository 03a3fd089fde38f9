/* cases.h - THE list of cases on which every kernel, gradient rule and expansion is tested.
 *
 * A case is one node: an operator, its attributes, the types of its inputs and their contents.
 * DT_F32 in a row means the float type under test. */
#ifndef CHECK_CASES_H
#define CHECK_CASES_H

#include "graph/op.h"

struct arena;
struct kernel_call;

enum fill {
    FILL_NORMAL,   /* standard normal */
    FILL_POSITIVE, /* between 0.5 and 1.5 */
    FILL_WIDE,     /* ten times standard normal */
    FILL_NARROW,   /* x times standard normal */
    FILL_MASKED,   /* standard normal, every third element of a row minus infinity */
    /* Standard normal; in some early rows, two thirds of the columns are x times that. */
    FILL_SPIKED,
    /* Packed q, k, v with heads of |x| columns. The scores of the last 200 keys are minus
     * infinity in float; if x is negative, those of all keys except ten in the middle. */
    FILL_SUNK,
    FILL_LEARNED,  /* standard normal; in column x, 12 more */
    FILL_CONSTANT, /* x everywhere */
    FILL_IDS,      /* integers from 0 to x - 1 */
    FILL_RESULT    /* an output of another operator, with the same attributes, on other inputs */
};

struct case_input {
    struct type type;
    enum fill fill;
    double x;
    bool wide;  /* stays f32 if the type under test is bf16 */
    bool fixed; /* no gradient flows to it */
    /* FILL_RESULT */
    enum op of;
    int of_out, of_n_in, of_in[MAX_IN];
};

struct op_case {
    enum op op;
    const char *what; /* the name of the case; unique within an operator */
    union attr attr;
    struct numerics numerics;
    struct case_input in[MAX_IN]; /* up to the first of rank 0 */
    struct type given;            /* rank 0: the inputs determine the type */
    bool given_exact;             /* its dtype is used unchanged */
    bool given_wide;              /* it stays f32 if the type under test is bf16 */
    int loss_outputs;             /* outputs with a gradient; 0: only the first */
    /* NULL, or why the gradient is not compared with finite differences. */
    const char *no_differences;
    /* Tolerances by type under test (relative error by norm, of all outputs) that replace the
     * defaults of check.c, and the reason. */
    double tolerance[DT_COUNT];
    const char *reason;
};

/* Case i of the list; NULL after the last. */
const struct op_case *case_at(int i);

int case_inputs(const struct op_case *c);

/* One case with contents: float inputs are doubles that are exact in the type under test. */
struct case_data {
    const struct op_case *c;
    void *in[MAX_IN]; /* double *, or int32_t * */
};

/* The types of input i and of `given` if the float type under test is `dtype`. */
struct type case_type(const struct op_case *c, int i, enum dtype dtype);
struct type case_given(const struct op_case *c, enum dtype dtype);
/* Fills the inputs of case i in double precision, with the same numbers in every call. */
enum status case_fill(int i, struct arena *a, struct case_data *ret_data);
/* The same inputs, rounded to their types; it shares those that need no rounding. */
enum status case_round(const struct case_data *data, enum dtype dtype, struct arena *a,
                       struct case_data *ret_data);
/* Input i converted to its type: the bytes that a kernel reads. */
enum status case_copy(const struct case_data *data, int i, enum dtype dtype, struct arena *a,
                      void **ret_bytes);
/* The node of the case, and its input and output types; fails if the operator refuses the types. */
enum status case_node(const struct op_case *c, enum dtype dtype, struct node *ret_node,
                      struct type *ret_in, struct type *ret_out);
/* The call of that node, without addresses; `node` holds its attributes. False if the operator
 * refuses the types or no tensor of the call has the float type. */
bool case_call(const struct op_case *c, enum dtype dtype, struct node *ret_node,
               struct kernel_call *ret);

#endif
