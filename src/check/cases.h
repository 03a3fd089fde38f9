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
    /* Standard normal, but in some rows of the first half two thirds of the columns are multiplied
     * by x. */
    FILL_SPIKED,
    /* Packed q, k, v with heads of |x| columns. Some scores are minus infinity in float: for x > 0
     * the scores of the last 200 keys, but never of key 0; for x < 0 the scores of all keys except
     * ten in the middle. */
    FILL_INFINITE_SCORES,
    FILL_LARGE_COLUMN, /* standard normal, plus 12 in column x */
    FILL_CONSTANT,     /* every element is x */
    FILL_IDS,          /* integers from 0 to x - 1 */
    FILL_RESULT /* an output of the operator `of` on other inputs, with the case's attributes */
};

struct case_input {
    struct type type;
    enum fill fill;
    double x;
    bool stays_f32; /* f32 if bf16 is under test, and f64 if f64 is */
    bool fixed;     /* no gradient flows to this input */
    /* FILL_RESULT: output of_out of the operator `of` on the case's inputs of_in */
    enum op of;
    int of_out, of_n_in, of_in[MAX_IN];
};

struct op_case {
    enum op op;
    const char *what; /* the name of the case; unique within an operator */
    union attr attr;
    struct numerics numerics;
    struct case_input in[MAX_IN]; /* the first input of rank 0 ends the list */
    struct type given;            /* rank 0: the inputs determine the type */
    bool given_exact;             /* `given` keeps its dtype whatever the type under test */
    bool given_stays_f32;         /* `given` is f32 if bf16 is under test, and f64 if f64 is */
    int loss_outputs;             /* outputs with a gradient; 0: only the first */
    /* The reason why the gradient is not compared with finite differences; NULL: it is compared. */
    const char *no_differences;
    /* tolerance[t]: if t is the type under test, the largest allowed relative error of each output,
     * by norm; 0: the default of check.c. `reason` explains it. */
    double tolerance[DT_COUNT];
    const char *reason;
};

/* Case i of the list; NULL after the last. */
const struct op_case *case_at(int i);

int case_inputs(const struct op_case *c);

/* A case with the contents of its inputs. Float inputs are stored as doubles. */
struct case_data {
    const struct op_case *c;
    void *in[MAX_IN]; /* double *, or int32_t * */
};

/* The types of input i, and of `given`, if the float type under test is `dtype`. */
struct type case_type(const struct op_case *c, int i, enum dtype dtype);
struct type case_given(const struct op_case *c, enum dtype dtype);
/* Fills the inputs of case i in double precision, with the same numbers in every call. */
enum status case_fill(int i, struct arena *a, struct case_data *ret_data);
/* Rounds the inputs of `data` to their types; *ret_data shares inputs that need no rounding. */
enum status case_round(const struct case_data *data, enum dtype dtype, struct arena *a,
                       struct case_data *ret_data);
/* Converts input i to its type; *ret_bytes are the bytes that a kernel reads. */
enum status case_copy(const struct case_data *data, int i, enum dtype dtype, struct arena *a,
                      void **ret_bytes);
/* The node of the case, and its input and output types; fails if the operator refuses the types. */
enum status case_node(const struct op_case *c, enum dtype dtype, struct node *ret_node,
                      struct type *ret_in, struct type *ret_out);
/* The kernel call of the case's node, without addresses; the call's attributes are in *ret_node.
 * Returns false if the operator refuses the types or no tensor of the call has the type `dtype`. */
bool case_call(const struct op_case *c, enum dtype dtype, struct node *ret_node,
               struct kernel_call *ret);

#endif
