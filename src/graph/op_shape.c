/* Shape rules and cost rules that many operators share. */
#include "graph/graph.h"
#include "graph/op_rules.h"

/* -> given */
enum status shape_given(struct node *n, const struct type *, const struct type *given,
                        struct type *out)
{
    BUG_IF(!given, "%s needs its type", op_def(n->op)->name);
    if (given->rank < 1 || type_elements(given) < 1)
        return fail(ST_USAGE, "a tensor without elements");
    out[0] = *given;
    n->n_out = 1;
    return ST_OK;
}

enum dtype result_dtype(enum dtype in, const struct type *given)
{
    if (!given || in == DT_F64 || (given->dtype != DT_F32 && given->dtype != DT_BF16)) return in;
    return given->dtype;
}

/* (...) -> (...), the type of input 0 */
enum status shape_same(struct node *n, const struct type *in, const struct type *, struct type *out)
{
    out[0] = in[0];
    n->n_out = 1;
    return ST_OK;
}

/* (...,T,T) -> (...,T,T) */
enum status shape_square(struct node *n, const struct type *in, const struct type *given,
                         struct type *out)
{
    int r = in[0].rank;
    if (r < 2 || in[0].dim[r - 1] != in[0].dim[r - 2])
        return fail(ST_USAGE, "the last two dimensions must be equal");
    return shape_same(n, in, given, out);
}

/* (...) -> (1); for bf16 inputs the result is f32 */
enum status shape_scalar(struct node *n, const struct type *in, const struct type *,
                         struct type *out)
{
    out[0] = type_scalar(in[0].dtype == DT_BF16 ? DT_F32 : in[0].dtype);
    n->n_out = 1;
    return ST_OK;
}

static double bytes_of(const struct type *t, int n)
{
    double bytes = 0;
    for (int i = 0; i < n; i++) bytes += (double)type_bytes(&t[i]);
    return bytes;
}

struct cost cost_free(const struct node *, const struct type *, const struct type *)
{
    return (struct cost){0, 0};
}

/* Every input is read once and every output is written once, without arithmetic. */
struct cost cost_move(const struct node *n, const struct type *in, const struct type *out)
{
    return (struct cost){0, bytes_of(in, n->n_in) + bytes_of(out, n->n_out)};
}

struct cost cost_each(const struct node *n, const struct type *in, const struct type *out,
                      double flops, const struct type *t)
{
    struct cost c = cost_move(n, in, out);
    c.flops = flops * (double)type_elements(t);
    return c;
}

/* One operation for each element of the largest operand. */
struct cost cost_pointwise(const struct node *n, const struct type *in, const struct type *out)
{
    bool reduces = n->n_in && type_elements(&in[0]) > type_elements(&out[0]);
    return cost_each(n, in, out, 1, reduces ? &in[0] : &out[0]);
}

/* Five operations for each element of input 0: an exponential and a few simple operations. */
struct cost cost_five(const struct node *n, const struct type *in, const struct type *out)
{
    return cost_each(n, in, out, 5, &in[0]);
}

/* One element of each row is read or written. */
struct cost cost_rows(const struct node *, const struct type *, const struct type *out)
{
    return (struct cost){0, 3.0 * (double)type_bytes(&out[0])};
}
