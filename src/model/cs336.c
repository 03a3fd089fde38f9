/* The language model of Stanford's CS336 (assignments 1 and 2, BasicsTransformerLM): pre-norm
 * blocks with RMSNorm, rotary positions, separate q, k, v and output projections, SwiGLU with three
 * matrices, no biases, and an output head that is not tied to the token table.
 *
 * Weights are (out,in), as in that course's files. Adjacent matrices that multiply the same input
 * (q, k, v; gate, up) therefore form one matrix, which the pass `join` uses. */
#include "graph/build.h"
#include "model/layers.h"

#include <math.h>
#include <stdio.h>

static const double NORM_EPS = 1e-5;
/* Initial values are truncated at this many standard deviations. */
static const double CUT = 3;

struct forward {
    const struct model *m;
    struct graph *g;
    int64_t B;
    enum model_mode mode;
    value step, positions, angles;
};

static value linear(const struct forward *f, const char *name, value x)
{
    struct graph_scope here = graph_enter(f->g, name, -1);
    x = g_matmul(f->g, x, model_weight(f->m, f->g, "weight"), false, true);
    graph_leave(f->g, here);
    return x;
}

static value norm(const struct forward *f, const char *name, value x)
{
    struct graph_scope here = graph_enter(f->g, name, -1);
    x = g_rmsnorm(f->g, x, model_weight(f->m, f->g, "weight"), NORM_EPS);
    graph_leave(f->g, here);
    return x;
}

/* (B,T,C) -> (B,T,C). ROPE rotates the adjacent heads of queries and keys. */
static value attention(const struct forward *f, value x)
{
    const struct config_model *c = &f->m->config;
    struct graph *g = f->g;
    struct graph_scope outside = graph_enter(g, "attn", -1), inside;
    value qkv[] = {linear(f, "q_proj", x), linear(f, "k_proj", x), linear(f, "v_proj", x)};
    inside = graph_enter(g, "qkv", -1);
    value packed = g_concat(g, 3, qkv); /* (B,T,C+2*KV*D) */
    graph_leave(g, inside);
    graph_enter(g, "rope", -1);
    packed = g_rope(g, packed, f->angles, (int)(c->n_head + model_kv_heads(c)));
    graph_leave(g, inside);
    const struct model_attention a = {
        f->B, f->mode == MODEL_CACHED, f->step, f->positions, {.pattern = DROPOUT_ATTENTION}};
    value y = linear(f, "output_proj", model_attention(f->m, g, &a, packed));
    graph_leave(g, outside);
    return y;
}

static value swiglu(const struct forward *f, value x)
{
    struct graph_scope outside = graph_enter(f->g, "ffn", -1);
    value gate = linear(f, "w1", x), up = linear(f, "w3", x);
    value y = linear(f, "w2", g_swiglu(f->g, gate, up)); /* (B,T,F) -> (B,T,C) */
    graph_leave(f->g, outside);
    return y;
}

static value logits(const struct model *m, struct graph *g, int64_t B, int64_t T,
                    enum model_mode mode)
{
    const struct config_model *c = &m->config;
    struct forward f = {.m = m, .g = g, .B = B, .mode = mode};
    value tokens = g_input(g, "tokens", type_2d(DT_I32, B, T));
    f.positions = g_input(g, "positions", type_1d(DT_I32, T));
    f.step = g_input(g, "step", type_scalar(DT_I32));

    struct graph_scope top = graph_enter(g, "rope", -1);
    f.angles = g_rope_table(g, f.positions, c->n_embd / c->n_head, c->rope_theta);
    graph_leave(g, top);
    graph_enter(g, "wte", -1);
    value x = g_embed(g, model_weight(m, g, "weight"), tokens); /* (B,T,C) */
    graph_leave(g, top);
    for (int l = 0; l < c->n_layer; l++) {
        char block[16];
        snprintf(block, sizeof block, "h.%d", l);
        struct graph_scope outside = graph_enter(g, block, l);
        x = g_add(g, x, attention(&f, norm(&f, "ln_1", x)));
        x = g_add(g, x, swiglu(&f, norm(&f, "ln_2", x)));
        graph_leave(g, outside);
    }
    return linear(&f, "lm_head", norm(&f, "ln_final", x)); /* (B,T,V) */
}

/* (out,in), with the initial deviation of Glorot and Bengio (AISTATS 2010). */
static struct parameter *matrix(struct model_parameters *l, const char *name, int64_t in,
                                int64_t out)
{
    struct parameter *p =
        model_parameter(l, name, type_2d(DT_F32, out, in), 0, sqrt(2 / (double)(in + out)));
    p->cut = CUT;
    return p;
}

static void lay_out(struct model *m, struct model_parameters *l)
{
    const struct config_model *c = &m->config;
    struct arena *a = l->arena;
    int64_t C = c->n_embd, F = c->d_ff ? c->d_ff : 4 * C, KV = model_kv_heads(c) * (C / c->n_head);
    model_pad_vocabulary(m);
    struct parameter *p =
        model_parameter(l, "wte.weight", type_2d(DT_F32, m->padded_vocab, C), 0, 1);
    p->rows = m->vocab;
    p->cut = CUT;
    p->matmul = false;
    for (int i = 0; i < c->n_layer; i++) {
        model_layer(l, arena_printf(a, "h.%d.ln_1", i), type_1d(DT_F32, C), 0, false);
        matrix(l, arena_printf(a, "h.%d.attn.q_proj.weight", i), C, C)->joined = 3;
        matrix(l, arena_printf(a, "h.%d.attn.k_proj.weight", i), C, KV);
        matrix(l, arena_printf(a, "h.%d.attn.v_proj.weight", i), C, KV);
        matrix(l, arena_printf(a, "h.%d.attn.output_proj.weight", i), C, C);
        model_layer(l, arena_printf(a, "h.%d.ln_2", i), type_1d(DT_F32, C), 0, false);
        matrix(l, arena_printf(a, "h.%d.ffn.w1.weight", i), C, F)->joined = 2;
        matrix(l, arena_printf(a, "h.%d.ffn.w3.weight", i), C, F);
        matrix(l, arena_printf(a, "h.%d.ffn.w2.weight", i), F, C);
    }
    model_layer(l, "ln_final", type_1d(DT_F32, C), 0, false);
    p = matrix(l, "lm_head.weight", C, m->padded_vocab);
    p->std = sqrt(2 / (double)(C + m->vocab));
    p->rows = m->vocab;
}

static enum status check(const struct config_model *c)
{
    TRY(model_check_groups(c));
    if (c->n_embd / c->n_head % 2)
        return fail(ST_USAGE,
                    "n_embd = %lld and n_head = %lld give heads of %lld channels; rotary embedding "
                    "needs an even number: change one of them",
                    (long long)c->n_embd, (long long)c->n_head, (long long)(c->n_embd / c->n_head));
    return ST_OK;
}

static const char *const keys[] = {"n_layer",    "n_head",     "n_kv_head", "n_embd",     "d_ff",
                                   "block_size", "rope_theta", "pad_vocab", "vocab_size", NULL};

const struct model_def model_cs336 = {
    .what = "the language model of CS336: RMSNorm, rotary positions, SwiGLU",
    .unit = "tokens",
    .keys = keys,
    .trained = true,
    .check = check,
    .lay_out = lay_out,
    .loss = model_loss_of_logits,
    .logits = logits,
    .flops_per_token = model_flops_by_size,
};
