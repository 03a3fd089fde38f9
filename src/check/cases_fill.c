#include "backend/kernel.h"
#include "base/arena.h"
#include "base/rng.h"
#include "check/cases.h"
#include "check/reference.h"
#include "graph/graph.h"

#include <math.h>
#include <string.h>

int case_inputs(const struct op_case *c)
{
    int n = 0;
    while (n < MAX_IN && c->in[n].type.rank) n++;
    return n;
}

struct type case_type(const struct op_case *c, int i, enum dtype dtype)
{
    struct type t = c->in[i].type;
    bool stays = c->in[i].stays_f32 && dtype == DT_BF16;
    if (t.dtype == DT_F32 && !stays) t.dtype = dtype;
    return t;
}

struct type case_given(const struct op_case *c, enum dtype dtype)
{
    struct type t = c->given;
    bool stays = c->given_stays_f32 && dtype == DT_BF16;
    if (t.dtype == DT_F32 && !c->given_exact && !stays) t.dtype = dtype;
    return t;
}

enum status case_copy(const struct case_data *data, int i, enum dtype dtype, struct arena *a,
                      void **ret_bytes)
{
    const struct type type = case_type(data->c, i, dtype);
    enum dtype from = type.dtype == DT_I32 ? DT_I32 : DT_F64;
    *ret_bytes = arena_alloc(a, type_bytes(&type));
    return reference_convert(*ret_bytes, type.dtype, data->in[i], from, type_elements(&type));
}

enum status case_node(const struct op_case *c, enum dtype dtype, struct node *ret_node,
                      struct type *ret_in, struct type *ret_out)
{
    struct type given = case_given(c, dtype);
    *ret_node = (struct node){.op = c->op,
                              .scope = c->what,
                              .n_in = case_inputs(c),
                              .attr = c->attr,
                              .numerics = c->numerics};
    for (int i = 0; i < case_inputs(c); i++) ret_in[i] = case_type(c, i, dtype);
    return op_def(c->op)->shape(ret_node, ret_in, given.rank ? &given : NULL, ret_out);
}

bool case_call(const struct op_case *c, enum dtype dtype, struct node *ret_node,
               struct kernel_call *ret)
{
    bool has_dtype = false;
    *ret = (struct kernel_call){.attr = &ret_node->attr, .numerics = c->numerics};
    if (case_node(c, dtype, ret_node, ret->in_type, ret->out_type) != ST_OK) return false;
    ret->n_in = ret_node->n_in;
    ret->n_out = ret_node->n_out;
    for (int i = 0; i < ret->n_in; i++) has_dtype |= ret->in_type[i].dtype == dtype;
    for (int i = 0; i < ret->n_out; i++) has_dtype |= ret->out_type[i].dtype == dtype;
    return has_dtype;
}

/* True for elements that FILL_SPIKED multiplies: queries and keys, but not values, of some rows. */
static bool spiked(const struct type *t, int64_t i)
{
    int64_t columns = type_columns(t), row = i / columns;
    return 2 * row < type_elements(t) / columns && row % 61 == 7 && i % columns < columns * 2 / 3;
}

/* Element i of q, k, v (B,T,columns). The first columns of each head of q and k are such that their
 * product is 0 or overflows to minus infinity. */
static double infinite_scores(const struct type *t, double head, int64_t i, double normal)
{
    enum { LAST = 200, MIDDLE = 10 };
    int64_t columns = t->dim[2], T = t->dim[1], row = i / columns % T;
    int64_t part = i % columns / (columns / 3);
    if (part == 2 || i % columns % (int64_t)fabs(head) != 0) return normal;
    if (part == 0) return 1e20;
    bool visible = head > 0 ? row == 0 || row + LAST < T : row >= T / 2 && row < T / 2 + MIDDLE;
    return visible ? 0 : -1e20;
}

/* Element i of the input, computed from element i of a standard normal sequence. */
static double value_of(const struct case_input *in, int64_t i, double normal)
{
    switch (in->fill) {
    case FILL_WIDE:
        return 10 * normal;
    case FILL_NARROW:
        return in->x * normal;
    case FILL_MASKED:
        return i % type_columns(&in->type) % 3 == 2 ? -INFINITY : normal;
    case FILL_SPIKED:
        return spiked(&in->type, i) ? in->x * normal : normal;
    case FILL_INFINITE_SCORES:
        return infinite_scores(&in->type, in->x, i, normal);
    case FILL_LARGE_COLUMN:
        return i % type_columns(&in->type) == (int64_t)in->x ? 12 + normal : normal;
    default:
        return normal;
    }
}

static void fill_floats(const struct case_input *in, uint32_t sequence, double *x)
{
    enum { BLOCK = 256 };
    float normal[BLOCK];
    int64_t n = type_elements(&in->type);
    for (int64_t i = 0; i < n; i++) {
        if (in->fill == FILL_CONSTANT) {
            x[i] = in->x;
        } else if (in->fill == FILL_POSITIVE) {
            x[i] = 0.5 + (double)rng_uniform(1, RNG_TEST, sequence, (uint64_t)i);
        } else {
            if (i % BLOCK == 0) rng_normals(1, RNG_TEST, sequence, (uint64_t)i, BLOCK, normal);
            x[i] = value_of(in, i, (double)normal[i % BLOCK]);
        }
    }
}

static void fill_ids(const struct case_input *in, uint32_t sequence, int32_t *ids)
{
    for (int64_t i = 0; i < type_elements(&in->type); i++)
        ids[i] = in->fill == FILL_CONSTANT
                     ? (int32_t)in->x
                     : (int32_t)rng_below(1, RNG_TEST, sequence, (uint64_t)i, (int64_t)in->x);
}

/* Computes input i, whose fill is FILL_RESULT, with the reference kernel. */
static enum status fill_result(struct case_data *data, int i, struct arena *a)
{
    const struct case_input *in = &data->c->in[i];
    struct node n = {.op = in->of, .n_in = in->of_n_in, .attr = data->c->attr};
    struct kernel_call call = {.attr = &n.attr, .n_in = in->of_n_in};
    for (int k = 0; k < in->of_n_in; k++) {
        call.in_type[k] = case_type(data->c, in->of_in[k], DT_F64);
        call.in[k] = data->in[in->of_in[k]];
    }
    TRY(op_def(in->of)->shape(&n, call.in_type, NULL, call.out_type));
    call.n_out = n.n_out;
    for (int k = 0; k < n.n_out; k++) call.out[k] = arena_alloc(a, type_bytes(&call.out_type[k]));
    TRY(reference_run(in->of, &call, a));
    memcpy(data->in[i], call.out[in->of_out], (size_t)type_bytes(&call.out_type[in->of_out]));
    return ST_OK;
}

/* Computes the inputs whose fill is FILL_RESULT and rounds them to their types. */
static enum status fill_results(struct case_data *data, enum dtype dtype, struct arena *a)
{
    const struct op_case *c = data->c;
    for (int k = 0; k < case_inputs(c); k++) {
        if (c->in[k].fill != FILL_RESULT) continue;
        int64_t n = type_elements(&c->in[k].type);
        data->in[k] = ARENA_NEW(a, double, n);
        TRY(fill_result(data, k, a));
        TRY(reference_round(data->in[k], n, case_type(c, k, dtype).dtype, a));
    }
    return ST_OK;
}

enum status case_fill(int i, struct arena *a, struct case_data *ret_data)
{
    const struct op_case *c = case_at(i);
    *ret_data = (struct case_data){.c = c};
    for (int k = 0; k < case_inputs(c); k++) {
        const struct case_input *in = &c->in[k];
        uint32_t sequence = (uint32_t)(i * MAX_IN + k);
        if (in->fill == FILL_RESULT) continue;
        ret_data->in[k] = ARENA_NEW(a, double, type_elements(&in->type));
        if (in->type.dtype == DT_I32)
            fill_ids(in, sequence, ret_data->in[k]);
        else
            fill_floats(in, sequence, ret_data->in[k]);
    }
    return fill_results(ret_data, DT_F64, a);
}

enum status case_round(const struct case_data *data, enum dtype dtype, struct arena *a,
                       struct case_data *ret_data)
{
    const struct op_case *c = data->c;
    *ret_data = *data;
    if (dtype == DT_F64) return ST_OK;
    for (int k = 0; k < case_inputs(c); k++) {
        const struct case_input *in = &c->in[k];
        int64_t n = type_elements(&in->type);
        if (in->fill == FILL_RESULT || in->type.dtype == DT_I32) continue;
        ret_data->in[k] = ARENA_NEW(a, double, n);
        memcpy(ret_data->in[k], data->in[k], (size_t)n * sizeof(double));
        TRY(reference_round(ret_data->in[k], n, case_type(c, k, dtype).dtype, a));
    }
    return fill_results(ret_data, dtype, a);
}
