/* One block of single-head self-attention, as "Profiling and optimizing PyTorch training" of Stringer's GPU and CUDA book
 * profiles it with Nsight: q, k, v by projections with biases, scores, softmax, the weighted sum, the residual sum, LayerNorm behind it;
 * neither causal nor with a projection of what comes out. One product makes q, k and v here, where the book has three; scores are
 * divided by sqrt(D) at every rung, where the book's slow attention forgets to. */
#include "graph/build.h"
#include "model/layers.h"

#include <math.h>

/* Those of a GPT's block, so that tables read alike. */
static const char BLOCK[] = "h.0", PROJECTION[] = "c_attn", NORM[] = "ln_1";

static value forward(const struct model *m, struct graph *g, value x)
{
    struct dropout none = {.pattern = DROPOUT_ATTENTION};
    value step = g_input(g, "step", type_scalar(DT_I32));
    struct graph_scope outside = graph_enter(g, BLOCK, 0), inside = graph_enter(g, "attn", -1);
    value y = model_linear(m, g, PROJECTION, x); /* (B,T,3C): q, k, v */
    y = g_attention(g, y, step, (int)m->config.n_head, 0, false, none);
    graph_leave(g, inside);
    y = model_norm(m, g, NORM, g_add(g, x, y));
    graph_leave(g, outside);
    return y;
}

/* The mean square of what lies between the output and targets that are drawn: of a norm's output alone the mean square is 1, and
 * its gradient nothing. */
static value loss(const struct model *m, struct graph *g, int64_t B, int64_t T,
                  enum model_mode mode)
{
    struct type t = type_3d(DT_F32, B, T, m->config.n_embd);
    (void)mode;
    value x = g_leaf(g, STORAGE_DRAWN, "x", t, 0);
    value targets = g_leaf(g, STORAGE_DRAWN, "targets", t, range_elements(&t));
    value y = forward(m, g, x);
    struct graph_scope top = graph_enter(g, "loss", -1);
    y = g_sum_squares(g, g_sub(g, y, targets));
    y = g_scale(g, y, 1 / (double)type_elements(&t));
    graph_leave(g, top);
    return y;
}

/* Weights as spread as those of a linear layer of PyTorch: C^-1/2 / sqrt(3). Nobody asks for the gradient of x, so the backward
 * pass has no product with them. */
static void lay_out(struct model *m, struct model_parameters *l)
{
    int64_t C = m->config.n_embd;
    struct arena *a = l->arena;
    m->vocab = m->padded_vocab = 0;
    const char *name = arena_printf(a, "%s.attn.%s", BLOCK, PROJECTION);
    model_layer(l, name, type_2d(DT_F32, C, 3 * C), 1 / sqrt(3 * (double)C), true)->product = false;
    model_layer(l, arena_printf(a, "%s.%s", BLOCK, NORM), type_1d(DT_F32, C), 0, true);
}

static const char *const keys[] = {"n_head", "n_embd", "block_size", NULL};

const struct model_def model_attention_block = {
    .what = "self-attention with projections, residual and norm",
    .unit = "positions",
    .keys = keys,
    .layers = 1,
    .check = model_check_heads,
    .lay_out = lay_out,
    .loss = loss,
};
