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

static struct softmax softmax_of(const struct kernel_call *c, bool score, int step)
{
    if (!score) return (struct softmax){.scale = 1};
    const struct dropout *d = &c->attr->score.drop;
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

static void forward(const struct kernel_call *c, struct cuda_launches *l, bool score)
{
    const struct softmax s = softmax_of(c, score, 1);
    struct cuda_launch *k = begin(c, l, "softmax", &s);
    args_out(k, 0, s.drop ? "y dropped" : "y");
    arg_step_and_dropout(k, &s);
    arg_in(k, "x", 0);
    finish(c, k, &s);
}

static void backward(const struct kernel_call *c, struct cuda_launches *l, bool score)
{
    const struct softmax s = softmax_of(c, score, 2);
    struct cuda_launch *k = begin(c, l, "softmax_grad", &s);
    arg_out(k, "dx", 0);
    args_in(k, 0, "dy y");
    arg_step_and_dropout(k, &s);
    finish(c, k, &s);
}

static void softmax(const struct kernel_call *c, struct cuda_launches *l)
{
    forward(c, l, false);
}
static void softmax_grad(const struct kernel_call *c, struct cuda_launches *l)
{
    backward(c, l, false);
}
static void score_softmax(const struct kernel_call *c, struct cuda_launches *l)
{
    forward(c, l, true);
}
static void score_softmax_grad(const struct kernel_call *c, struct cuda_launches *l)
{
    backward(c, l, true);
}

/* --- rows of any length --- */

/* Without dropout, other tensors stand for its unread inputs. */
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

static void forward_long(const struct kernel_call *c, struct cuda_launches *l, bool score)
{
    const struct softmax s = softmax_of(c, score, 1);
    struct cuda_launch *k =
        launch_add(l, "softmax_long.cu", "softmax_long", type_rows(&c->in_type[0]), 1024);
    arg_out(k, "y", 0);
    arg_out(k, "dropped", c->n_out - 1);
    arg_in(k, "x", 0);
    finish_long(c, k, &s);
}

static void backward_long(const struct kernel_call *c, struct cuda_launches *l, bool score)
{
    const struct softmax s = softmax_of(c, score, 2);
    struct cuda_launch *k =
        launch_add(l, "softmax_long.cu", "softmax_grad_long", type_rows(&c->in_type[0]), 1024);
    arg_out(k, "dx", 0);
    args_in(k, 0, "dy y");
    finish_long(c, k, &s);
}

static void softmax_long(const struct kernel_call *c, struct cuda_launches *l)
{
    forward_long(c, l, false);
}
static void softmax_grad_long(const struct kernel_call *c, struct cuda_launches *l)
{
    backward_long(c, l, false);
}
static void score_softmax_long(const struct kernel_call *c, struct cuda_launches *l)
{
    forward_long(c, l, true);
}
static void score_softmax_grad_long(const struct kernel_call *c, struct cuda_launches *l)
{
    backward_long(c, l, true);
}

static bool fits_long(const struct kernel_call *c)
{
    return types_are(c, "aa", "a");
}
static bool fits_score_long(const struct kernel_call *c)
{
    return types_are(c, "ai", "aa");
}
static bool fits_score_grad_long(const struct kernel_call *c)
{
    return types_are(c, "aai", "a");
}
static bool few_columns(const struct kernel_call *c)
{
    return type_columns(&c->in_type[0]) <= MOST_COLUMNS;
}
static bool fits(const struct kernel_call *c)
{
    return few_columns(c) && fits_long(c);
}
static bool fits_score(const struct kernel_call *c)
{
    return few_columns(c) && fits_score_long(c);
}
static bool fits_score_grad(const struct kernel_call *c)
{
    return few_columns(c) && fits_score_grad_long(c);
}

/* clang-format off */
const struct cuda_row softmax_rows[] = {
    CUDA_ROW(SOFTMAX,            "registers", fits, softmax),
    CUDA_ROW(SOFTMAX_GRAD,       "registers", fits, softmax_grad),
    CUDA_ROW(SCORE_SOFTMAX,      "registers", fits_score, score_softmax),
    CUDA_ROW(SCORE_SOFTMAX_GRAD, "registers", fits_score_grad, score_softmax_grad),
    CUDA_ROW(SOFTMAX,            "long", fits_long, softmax_long),
    CUDA_ROW(SOFTMAX_GRAD,       "long", fits_long, softmax_grad_long),
    CUDA_ROW(SCORE_SOFTMAX,      "long", fits_score_long, score_softmax_long),
    CUDA_ROW(SCORE_SOFTMAX_GRAD, "long", fits_score_grad_long, score_softmax_grad_long),
    CUDA_ROWS_END,
};
/* clang-format on */
