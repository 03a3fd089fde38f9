/* ELU of a vector: introductions to GPU programming use this kernel to demonstrate memory-bound
 * code and the cost of unfused kernels. The vector has batch_size x block_size elements. The model
 * has no parameters; the backward pass computes the gradient of x. */
#include "graph/build.h"
#include "model/layers.h"

static value loss(const struct model *, struct graph *g, int64_t B, int64_t T, enum model_mode)
{
    value x = g_leaf(g, STORAGE_RANDOM, "x", type_1d(DT_F32, B * T), 0);
    struct graph_scope top = graph_enter(g, "elu", -1);
    value y = g_elu(g, x);
    graph_leave(g, top);
    graph_enter(g, "loss", -1);
    y = g_scale(g, g_sum_squares(g, y), 1 / (double)(B * T));
    graph_leave(g, top);
    return y;
}

static void lay_out(struct model *m, struct model_parameters *)
{
    m->vocab = m->padded_vocab = 0;
}

static const char *const keys[] = {"block_size", NULL};

const struct model_def model_elu = {
    .what = "ELU of a vector of batch_size x block_size elements",
    .unit = "elements",
    .keys = keys,
    .lay_out = lay_out,
    .loss = loss,
};
