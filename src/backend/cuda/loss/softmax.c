/* Softmax and its gradient, plain and of attention scores: rows in registers, compiled for their
 * length; longer rows are read several times. */
#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"

enum { MOST_COLUMNS = 8192, ITEM_ROWS = 4 }; /* ITEM_ROWS: rows of a group of lanes */

/* Common to the four operators; the plain ones have a scale of 1. */
struct softmax {
    bool score, causal;
    double scale;
    const struct dropout *drop; /* NULL: none */
    int step;                   /* index of the input */
};

static struct softmax softmax_of(const struct kernel_call *c, const struct cuda_launches *l,
                                 int step)
{
    enum op op = l->row->kernel.op;
    const struct dropout *d = &c->attr->score.drop;
    if (op == OP_SOFTMAX || op == OP_SOFTMAX_GRAD) return (struct softmax){.scale = 1};
    return (struct softmax){true, c->attr->score.causal, c->attr->score.scale,
                            d->threshold > 0 ? d : NULL, step};
}

/* Groups of rows: for scores 4 per 16 rows of a matrix, rounded up. */
static int64_t items_of(const struct type *x, bool score)
{
    int64_t rows = type_rows(x), T = type_columns(x);
    return score ? rows / T * ceil_div(T, 16) * 4 : ceil_div(rows, ITEM_ROWS);
}

static struct cuda_launch *begin(const struct kernel_call *c, struct cuda_launches *l,
                                 const char *entry, const struct softmax *s)
{
    const struct type *x = &c->in_type[0];
    int lanes = type_columns(x) <= 1024 ? 32 : row_lanes(type_columns(x), 16);
    struct cuda_launch *k = row_launch(l, "softmax.cu", entry, items_of(x, s->score), lanes);
    launch_define_type(k, "T_X", x->dtype);
    launch_define(k, "COLUMNS", type_columns(x));
    launch_define(k, "SCORE", s->score);
    launch_define(k, "CAUSAL", s->causal);
    launch_define(k, "DROP", s->drop != NULL);
    return k;
}

static void finish(const struct kernel_call *c, struct cuda_launch *k, const struct softmax *s)
{
    arg_f32(k, "scale", s->scale);
    arg_i64(k, "rows", type_rows(&c->in_type[0]));
}

static void arg_step_and_dropout(struct cuda_launch *k, const struct softmax *s)
{
    if (!s->drop) return;
    arg_in(k, "step", s->step);
    arg_dropout(k, s->drop);
}

static void softmax(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct softmax s = softmax_of(c, l, 1);
    struct cuda_launch *k = begin(c, l, "softmax", &s);
    args_out(k, 0, s.drop ? "y dropped" : "y");
    arg_step_and_dropout(k, &s);
    arg_in(k, "x", 0);
    finish(c, k, &s);
}

static void softmax_grad(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct softmax s = softmax_of(c, l, 2);
    struct cuda_launch *k = begin(c, l, "softmax_grad", &s);
    arg_out(k, "dx", 0);
    args_in(k, 0, "dy y");
    arg_step_and_dropout(k, &s);
    finish(c, k, &s);
}

/* --- rows of any length --- */

/* Without dropout, the arguments of dropout are not read, and other tensors are passed in their
 * place. */
static void finish_long(const struct kernel_call *c, struct cuda_launch *k, const struct softmax *s)
{
    const struct dropout none = {0};
    launch_define_type(k, "T_X", c->in_type[0].dtype);
    arg_in(k, "step", s->drop ? s->step : 0);
    arg_dropout(k, s->drop ? s->drop : &none);
    arg_f32(k, "scale", s->scale);
    arg_i32(k, "columns", type_columns(&c->in_type[0]));
    arg_i32(k, "square", s->score);
    arg_i32(k, "causal", s->causal);
}

static void softmax_long(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct softmax s = softmax_of(c, l, 1);
    struct cuda_launch *k =
        launch_add(l, "softmax_long.cu", "softmax_long", type_rows(&c->in_type[0]), 1024);
    arg_out(k, "y", 0);
    arg_out(k, "dropped", c->n_out - 1);
    arg_in(k, "x", 0);
    finish_long(c, k, &s);
}

static void softmax_grad_long(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct softmax s = softmax_of(c, l, 2);
    struct cuda_launch *k =
        launch_add(l, "softmax_long.cu", "softmax_grad_long", type_rows(&c->in_type[0]), 1024);
    arg_out(k, "dx", 0);
    args_in(k, 0, "dy y");
    finish_long(c, k, &s);
}

static bool fits(const struct kernel_call *c)
{
    return type_columns(&c->in_type[0]) <= MOST_COLUMNS;
}

/* clang-format off */
const struct cuda_row softmax_rows[] = {
    CUDA_ROW(SOFTMAX,            "registers", "aa",  "a",  fits, softmax),
    CUDA_ROW(SOFTMAX_GRAD,       "registers", "aa",  "a",  fits, softmax_grad),
    CUDA_ROW(SCORE_SOFTMAX,      "registers", "ai",  "aa", fits, softmax),
    CUDA_ROW(SCORE_SOFTMAX_GRAD, "registers", "aai", "a",  fits, softmax_grad),
    CUDA_ROW(SOFTMAX,            "long",      "aa",  "a",  NULL, softmax_long),
    CUDA_ROW(SOFTMAX_GRAD,       "long",      "aa",  "a",  NULL, softmax_grad_long),
    CUDA_ROW(SCORE_SOFTMAX,      "long",      "ai",  "aa", NULL, softmax_long),
    CUDA_ROW(SCORE_SOFTMAX_GRAD, "long",      "aai", "a",  NULL, softmax_grad_long),
    CUDA_ROWS_END,
};
/* clang-format on */
