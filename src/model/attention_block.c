/* One block of single-head self-attention, as profiled with Nsight in "Profiling and optimizing
 * PyTorch training" of Stringer's GPU and CUDA book: q, k, v projections with biases, scores,
 * softmax, weighted sum, residual sum, LayerNorm. The block has no output projection. It differs
 * from the book in two points: one matmul computes q, k and v, where the book uses three; scores
 * are divided by sqrt(D), which the book's slow attention omits, unless attention_scale is none. */
#include "graph/build.h"
#include "model/layers.h"

#include <math.h>

/* The names of the same parts in a GPT block, so that tables of both models look alike. */
static const char BLOCK[] = "h.0", PROJECTION[] = "c_attn", NORM[] = "ln_1";

static value forward(const struct model *m, struct graph *g, value x)
{
    const struct config_model *c = &m->config;
    union attr attr = {.attention = {.heads = (int)c->n_head,
                                     .causal = c->attention_mask == ATTENTION_MASK_CAUSAL,
                                     .unscaled = c->attention_scale == ATTENTION_SCALE_NONE,
                                     .drop.pattern = DROPOUT_ATTENTION}};
    value step = g_input(g, "step", type_scalar(DT_I32));
    struct graph_scope outside = graph_enter(g, BLOCK, 0), inside = graph_enter(g, "attn", -1);
    value y = model_linear(m, g, PROJECTION, x); /* (B,T,3C): q, k, v */
    y = graph_add(g, OP_ATTENTION, &attr, 2, (value[]){y, step}, NULL);
    graph_leave(g, inside);
    y = model_norm(m, g, NORM, g_add(g, x, y));
    graph_leave(g, outside);
    return y;
}

/* The mean square of the output minus random targets. Targets are needed because the mean square of
 * a norm's output alone is always 1 and has the gradient zero. */
static value loss(const struct model *m, struct graph *g, int64_t B, int64_t T, enum model_mode)
{
    struct type t = type_3d(DT_F32, B, T, m->config.n_embd);
    value x = g_leaf(g, STORAGE_RANDOM, "x", t, 0);
    value targets = g_leaf(g, STORAGE_RANDOM, "targets", t, range_elements(&t));
    value y = forward(m, g, x);
    struct graph_scope top = graph_enter(g, "loss", -1);
    y = g_sum_squares(g, g_sub(g, y, targets));
    y = g_scale(g, y, 1 / (double)type_elements(&t));
    graph_leave(g, top);
    return y;
}

/* Weights have the standard deviation of PyTorch's linear layers: C^-1/2 / sqrt(3). The gradient of
 * x is not needed, so the backward pass has no matmul with these weights. */
static void lay_out(struct model *m, struct model_parameters *l)
{
    int64_t C = m->config.n_embd;
    struct arena *a = l->arena;
    m->vocab = m->padded_vocab = 0;
    const char *name = arena_printf(a, "%s.attn.%s", BLOCK, PROJECTION);
    model_layer(l, name, type_2d(DT_F32, C, 3 * C), 1 / sqrt(3 * (double)C), true)->matmul = false;
    model_layer(l, arena_printf(a, "%s.%s", BLOCK, NORM), type_1d(DT_F32, C), 0, true);
}

static const char *const keys[] = {"n_head",         "n_embd",          "block_size",
                                   "attention_mask", "attention_scale", NULL};

const struct model_def model_attention_block = {
    .what = "self-attention with projections, residual and norm",
    .unit = "positions",
    .keys = keys,
    .layers = 1,
    .check = model_check_heads,
    .lay_out = lay_out,
    .loss = loss,
};
