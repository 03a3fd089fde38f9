/* The small network of CS336's exercise on the types of values in mixed precision (assignment 2,
 * ToyModel): linear to 10 features, ReLU, LayerNorm, linear to as many classes as input features.
 * The linear layers have no biases; the norm has one. */
#include "graph/build.h"
#include "model/layers.h"

#include <math.h>

enum { HIDDEN = 10 };

static value logits(const struct model *m, struct graph *g, value x)
{
    x = model_linear(m, g, "fc1", x);
    struct graph_scope top = graph_enter(g, "relu", -1);
    x = g_relu(g, x);
    graph_leave(g, top);
    return model_linear(m, g, "fc2", model_norm(m, g, "ln", x));
}

static value loss(const struct model *m, struct graph *g, int64_t B, int64_t T, enum model_mode)
{
    value x = g_leaf(g, STORAGE_RANDOM, "x", type_3d(DT_F32, B, T, m->config.n_embd), 0);
    value targets = g_input(g, "targets", type_2d(DT_I32, B, T));
    return model_cross_entropy(m, g, logits(m, g, x), targets);
}

/* Weights have the initial deviation of PyTorch's linear layers. No gradient of x is needed. */
static void lay_out(struct model *m, struct model_parameters *l)
{
    int64_t C = m->config.n_embd;
    m->vocab = m->padded_vocab = C;
    double from_input = 1 / sqrt(3 * (double)C), from_hidden = 1 / sqrt(3.0 * HIDDEN);
    model_layer(l, "fc1", type_2d(DT_F32, C, HIDDEN), from_input, false)->matmul = false;
    model_layer(l, "ln", type_1d(DT_F32, HIDDEN), 0, true);
    model_layer(l, "fc2", type_2d(DT_F32, HIDDEN, C), from_hidden, false);
}

static const char *const keys[] = {"n_embd", "block_size", NULL};

const struct model_def model_toy = {
    .what = "linear, ReLU, norm, linear: CS336's ToyModel",
    .unit = "samples",
    .keys = keys,
    .lay_out = lay_out,
    .loss = loss,
};
