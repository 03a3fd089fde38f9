/* Cross-entropy of logits and target tokens, averaged over rows. A row of logits has V' columns, at
 * least attr.loss.vocab; the columns from `vocab` on are padding. */
#include "graph/build.h"
#include "graph/op_rules.h"

#include <math.h>

static struct type float_like(const struct type *ids, enum dtype dtype)
{
    struct type t = *ids;
    t.dtype = dtype_of_statistics(dtype);
    return t;
}

static enum status check_targets(const struct node *n, const struct type *in)
{
    if (in[1].dtype != DT_I32 || type_elements(&in[1]) != type_rows(&in[0]))
        return fail(ST_USAGE, "needs one integer target for each row of logits");
    if (n->attr.loss.vocab < 1 || n->attr.loss.vocab > type_columns(&in[0]))
        return fail(ST_USAGE, "a vocabulary of %lld does not fit %lld columns",
                    (long long)n->attr.loss.vocab, (long long)type_columns(&in[0]));
    return ST_OK;
}

/* logits (...,V'), targets (...) -> loss (1), log-sum-exp (...) */
enum status shape_cross_entropy(struct node *n, const struct type *in, const struct type *,
                                struct type *out)
{
    TRY(check_targets(n, in));
    out[1] = float_like(&in[1], in[0].dtype);
    out[0] = type_scalar(out[1].dtype);
    n->n_out = 2;
    return ST_OK;
}

/* logits (...,V'), targets (...), dloss (1) -> dlogits, loss (1) */
enum status shape_cross_entropy_both(struct node *n, const struct type *in, const struct type *,
                                     struct type *out)
{
    TRY(check_targets(n, in));
    out[0] = in[0];
    out[1] = type_scalar(dtype_of_statistics(in[0].dtype));
    n->n_out = 2;
    return ST_OK;
}

void grad_cross_entropy(struct graph *g, const struct node *n, const value *dout, value *din)
{
    value in[] = {n->in[0], n->in[1], n->out[1], dout[0]};
    din[0] = graph_add(g, OP_CROSS_ENTROPY_GRAD, &n->attr, 4, in, NULL);
}

/* Sets padding columns to minus infinity, so they have no probability and no gradient. */
static value without_padding(struct graph *g, const struct node *n, value logits)
{
    int64_t vocab = n->attr.loss.vocab;
    const struct type *t = graph_type(g, logits);
    return vocab == type_columns(t) ? logits : g_column_mask(g, logits, vocab, -INFINITY);
}

void expand_cross_entropy(struct graph *g, const struct node *n, const value *in, value *out)
{
    value z = without_padding(g, n, in[0]);
    value max = g_detach(g, g_max_row(g, z));
    value shifted = g_sub(g, z, max);
    value log_sum = g_log(g, g_sum_row(g, g_exp(g, shifted))); /* (...,1) */
    value rows = g_sub(g, log_sum, g_pick(g, shifted, in[1]));
    const struct type t = *graph_type(g, rows);
    int64_t N = type_elements(&t);
    value sum = g_sum_row(g, g_reshape(g, rows, type_1d(t.dtype, N)));
    out[0] = g_scale(g, sum, 1.0 / (double)N);
    out[1] = g_reshape(g, g_add(g, log_sum, max), *graph_type(g, in[1]));
}

/* logits, targets, log-sum-exp, dloss -> (softmax - onehot) dloss / N */
void expand_cross_entropy_grad(struct graph *g, const struct node *n, const value *in, value *out)
{
    const struct type t = *graph_type(g, in[0]);
    struct type row = t;
    row.dim[row.rank - 1] = 1;
    value p = g_exp(g, g_sub(g, without_padding(g, n, in[0]), g_reshape(g, in[2], row)));
    value onehot = g_pick_grad(g, in[1], g_fill(g, row, 1), t);
    value mean = g_scale(g, g_sub(g, p, onehot), 1.0 / (double)type_rows(&t));
    out[0] = g_mul(g, mean, in[3]);
}

void expand_cross_entropy_both(struct graph *g, const struct node *n, const value *in, value *out)
{
    value loss = g_cross_entropy(g, in[0], in[1], n->attr.loss.vocab);
    value grad_in[] = {in[0], in[1], graph_out(loss, 1), in[2]};
    out[0] = graph_add(g, OP_CROSS_ENTROPY_GRAD, &n->attr, 4, grad_in, NULL);
    out[1] = loss;
}
