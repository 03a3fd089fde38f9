/* Launches norm_long.cu, the norms of rows of any length. An RMS norm passes a null pointer as
 * mean. */
#include "backend/cuda/common/rows.h"
#include "backend/cuda/norm/norm.h"

static struct cuda_launch *long_launch(const struct kernel_call *c, struct cuda_launches *l,
                                       const char *entry, int64_t blocks)
{
    enum { LONG_THREADS = 1024 };
    struct cuda_launch *k = launch_add(l, "norm_long.cu", entry, blocks, LONG_THREADS);
    launch_define_type(k, "T_X", c->in_type[0].dtype);
    return k;
}

static void arg_out_if(struct cuda_launch *k, bool present, const char *name, int index)
{
    if (present)
        arg_out(k, name, index);
    else
        arg_null(k, name);
}

void norm_long(const struct kernel_call *c, struct cuda_launches *l)
{
    struct cuda_launch *k = long_launch(c, l, "layernorm_long", type_rows(&c->in_type[0]));
    arg_out(k, "y", 0);
    arg_out_if(k, c->n_out == 3, "mean", 1);
    arg_out(k, "rstd", c->n_out - 1);
    args_in(k, 0, "x w");
    arg_in_if(k, c->n_in > 2, "bias", 2);
    arg_f32(k, "eps", c->attr->norm.eps);
    arg_i32(k, "columns", type_columns(&c->in_type[0]));
}

void add_norm_long(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct dropout none = {0};
    bool centred = c->n_out == 4;
    int w = centred ? 3 : 2;
    struct cuda_launch *k = long_launch(c, l, "add_layernorm_long", type_rows(&c->in_type[0]));
    args_out(k, 0, "s y");
    arg_out_if(k, centred, "mean", 2);
    arg_out(k, "rstd", c->n_out - 1);
    args_in(k, 0, "a b");
    arg_in_if(k, centred, "step", 2);
    arg_in(k, "w", w);
    arg_in_if(k, c->n_in > w + 1, "bias", w + 1);
    arg_dropout(k, centred ? &c->attr->norm.drop : &none);
    arg_f32(k, "eps", c->attr->norm.eps);
    arg_i32(k, "columns", type_columns(&c->in_type[0]));
}

/* dw and dbias are computed first, because dx may overwrite dy. */
void norm_grad_long(const struct kernel_call *c, struct cuda_launches *l)
{
    enum { COLUMNS_OF_BLOCK = 32 };
    enum op op = l->row->kernel.op;
    int64_t columns = type_columns(&c->in_type[0]), rows = type_rows(&c->in_type[0]);
    bool centred = op == OP_LAYERNORM_GRAD || op == OP_LAYERNORM_GRAD_ADD;
    int dy = op == OP_LAYERNORM_GRAD_ADD || op == OP_RMSNORM_GRAD_ADD; /* after `more` */
    struct cuda_launch *k = long_launch(c, l, "norm_columns", ceil_div(columns, COLUMNS_OF_BLOCK));
    arg_out(k, "dw", 1);
    arg_out_if(k, c->n_out > 2, "dbias", 2);
    args_in(k, dy, "dy x");
    arg_in_if(k, centred, "mean", dy + 3);
    arg_in(k, "rstd", c->n_in - 1);
    arg_i64(k, "rows", rows);
    arg_i32(k, "columns", columns);

    k = long_launch(c, l, "layernorm_grad_long", rows);
    arg_out(k, "dx", 0);
    arg_in_if(k, dy > 0, "more", 0);
    args_in(k, dy, "dy x w");
    arg_in_if(k, centred, "mean", dy + 3);
    arg_in(k, "rstd", c->n_in - 1);
    arg_i32(k, "columns", columns);
}
