/* The GPT of nanoGPT (and GPT-2): pre-norm blocks, packed q, k, v (optionally fewer k, v heads),
 * learned positions, and an output head tied to the token table. */
#include "base/rng.h"
#include "graph/build.h"
#include "model/layers.h"

#include <math.h>
#include <stdio.h>

static const double INIT_STD = 0.02;

struct forward {
    const struct model *m;
    struct graph *g;
    int64_t B;
    bool train, cached;
    value step, positions;
};

/* Dropout sites are numbered in model order, so the masks do not depend on the fusion level. */
static struct dropout drop_at(const struct forward *f, int site, enum dropout_pattern pattern)
{
    int threshold = f->train ? dropout_threshold(f->m->config.dropout) : 0;
    return (struct dropout){pattern, threshold, f->m->seed, (uint32_t)site};
}

static value drop(const struct forward *f, int site, value x)
{
    struct dropout d = drop_at(f, site, DROPOUT_POINTWISE);
    return d.threshold ? g_dropout(f->g, x, f->step, d) : x;
}

/* (B,T,C+2*KV*D) -> (B,T,C) */
static value attention(const struct forward *f, int site, value qkv)
{
    const struct model_attention a = {f->B, f->cached, f->step, f->positions,
                                      drop_at(f, site, DROPOUT_ATTENTION)};
    return model_attention(f->m, f->g, &a, qkv);
}

static value logits(const struct model *m, struct graph *g, int64_t B, int64_t T,
                    enum model_mode mode)
{
    struct forward f = {m, g, B, mode == MODEL_TRAIN, mode == MODEL_CACHED, {0}, {0}};
    value tokens = g_input(g, "tokens", type_2d(DT_I32, B, T));
    f.positions = g_input(g, "positions", type_1d(DT_I32, T));
    f.step = g_input(g, "step", type_scalar(DT_I32));

    struct graph_scope top = graph_enter(g, "wte", -1);
    value table = model_weight(m, g, "weight"); /* (V,C) */
    value x = g_embed(g, table, tokens);
    graph_leave(g, top);
    graph_enter(g, "wpe", -1);
    x = g_add(g, x, g_embed(g, model_weight(m, g, "weight"), f.positions)); /* (B,T,C) */
    graph_leave(g, top);
    x = drop(&f, 0, x);

    for (int l = 0; l < m->config.n_layer; l++) {
        char block[16];
        snprintf(block, sizeof block, "h.%d", l);
        struct graph_scope outside = graph_enter(g, block, l);
        value y = model_norm(m, g, "ln_1", x);
        struct graph_scope inside = graph_enter(g, "attn", -1);
        y = model_linear(m, g, "c_attn", y); /* (B,T,C+2*KV*D): q, k, v */
        y = attention(&f, 1 + 3 * l, y);
        y = model_linear(m, g, "c_proj", y);
        graph_leave(g, inside);
        x = g_add(g, x, drop(&f, 2 + 3 * l, y));
        y = model_norm(m, g, "ln_2", x);
        graph_enter(g, "mlp", -1);
        y = model_linear(m, g, "c_fc", y); /* (B,T,4C) */
        y = g_gelu(g, y, m->config.gelu == GELU_TANH);
        y = model_linear(m, g, "c_proj", y);
        graph_leave(g, inside);
        x = g_add(g, x, drop(&f, 3 + 3 * l, y));
        graph_leave(g, outside);
    }
    x = model_norm(m, g, "ln_f", x);
    graph_enter(g, "lm_head", -1);
    x = g_matmul(g, x, table, false, true); /* (B,T,V) */
    graph_leave(g, top);
    return x;
}

static void lay_out(struct model *m, struct model_parameters *l)
{
    const struct config_model *c = &m->config;
    struct arena *a = l->arena;
    int64_t C = c->n_embd, L = c->n_layer, qkv = C + 2 * model_kv_heads(c) * (C / c->n_head);
    model_pad_vocabulary(m);
    double residual = INIT_STD / sqrt(2.0 * (double)L);
    struct parameter *p =
        model_parameter(l, "wte.weight", type_2d(DT_F32, m->padded_vocab, C), 0, INIT_STD);
    p->rows = m->vocab;
    p = model_parameter(l, "wpe.weight", type_2d(DT_F32, c->block_size, C), 0, INIT_STD);
    p->matmul = false;
    p->positions = true;
    for (int i = 0; i < L; i++) {
        model_layer(l, arena_printf(a, "h.%d.ln_1", i), type_1d(DT_F32, C), 0, c->bias);
        model_layer(l, arena_printf(a, "h.%d.attn.c_attn", i), type_2d(DT_F32, C, qkv), INIT_STD,
                    c->bias);
        model_layer(l, arena_printf(a, "h.%d.attn.c_proj", i), type_2d(DT_F32, C, C), residual,
                    c->bias);
        model_layer(l, arena_printf(a, "h.%d.ln_2", i), type_1d(DT_F32, C), 0, c->bias);
        model_layer(l, arena_printf(a, "h.%d.mlp.c_fc", i), type_2d(DT_F32, C, 4 * C), INIT_STD,
                    c->bias);
        model_layer(l, arena_printf(a, "h.%d.mlp.c_proj", i), type_2d(DT_F32, 4 * C, C), residual,
                    c->bias);
    }
    model_layer(l, "ln_f", type_1d(DT_F32, C), 0, c->bias);
}

static const char *const keys[] = {"n_layer",    "n_head",     "n_kv_head", "n_embd",
                                   "block_size", "dropout",    "bias",      "gelu",
                                   "pad_vocab",  "vocab_size", NULL};

const struct model_def model_gpt = {
    .what = "the GPT of nanoGPT and GPT-2",
    .unit = "tokens",
    .keys = keys,
    .trained = true,
    .check = model_check_groups,
    .lay_out = lay_out,
    .loss = model_loss_of_logits,
    .logits = logits,
    .flops_per_token = model_flops_by_size,
};
