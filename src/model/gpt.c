#include "model/gpt.h"

#include "base/rng.h"
#include "graph/build.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double NORM_EPS = 1e-5;
static const double INIT_STD = 0.02;

/* One forward pass being written down. */
struct pass_through {
    const struct gpt *m;
    struct graph *g;
    int64_t B;
    bool train, cached;
    value step, positions;
};

/* The parameter whose name is the scope joined with `name`; a leaf is made once. */
static value weight(const struct pass_through *f, const char *name)
{
    char full[128];
    snprintf(full, sizeof full, "%s%s%s", f->g->scope, *f->g->scope ? "." : "", name);
    value known = graph_find_leaf(f->g, STORAGE_WEIGHTS, full);
    if (known.i || f->g->st != ST_OK) return known;
    for (int i = 0; i < f->m->parameters; i++) {
        const struct parameter *p = &f->m->parameter[i];
        if (!strcmp(p->name, full)) return g_leaf(f->g, STORAGE_WEIGHTS, name, p->type, p->offset);
    }
    bug(__FILE__, __LINE__, "no parameter %s", full);
}

static value bias(const struct pass_through *f)
{
    return f->m->config.bias ? weight(f, "bias") : (value){0};
}

static value linear(const struct pass_through *f, const char *name, value x)
{
    struct graph_scope here = graph_enter(f->g, name, -1);
    x = g_linear(f->g, x, weight(f, "weight"), bias(f), false);
    graph_leave(f->g, here);
    return x;
}

static value norm(const struct pass_through *f, const char *name, value x)
{
    struct graph_scope here = graph_enter(f->g, name, -1);
    x = g_layernorm(f->g, x, weight(f, "weight"), bias(f), NORM_EPS);
    graph_leave(f->g, here);
    return x;
}

/* Sites are numbered as they stand in the model: the same at every rung. */
static struct dropout drop_at(const struct pass_through *f, int site, enum dropout_pattern pattern)
{
    int threshold = f->train ? dropout_threshold(f->m->config.dropout) : 0;
    return (struct dropout){pattern, threshold, f->m->seed, (uint32_t)site};
}

static value drop(const struct pass_through *f, int site, value x)
{
    struct dropout d = drop_at(f, site, DROPOUT_POINTWISE);
    return d.threshold ? g_dropout(f->g, x, f->step, d) : x;
}

/* Columns of the keys, and of the values. */
static int64_t key_columns(const struct config_model *c)
{
    return c->n_embd / c->n_head * (c->n_kv_head ? c->n_kv_head : c->n_head);
}

static value attention(const struct pass_through *f, int site, value qkv) /* -> (B,T,C) */
{
    const struct config_model *c = &f->m->config;
    int kv_heads = c->n_kv_head == c->n_head ? 0 : (int)c->n_kv_head;
    if (f->cached) {
        struct type t = type_4d(DT_F32, 2, f->B, c->block_size, key_columns(c));
        value cache = g_leaf(f->g, STORAGE_CACHE, "cache", t, f->g->layer * type_elements(&t));
        return g_attention_cached(f->g, cache, qkv, f->positions, (int)c->n_head, kv_heads);
    }
    return g_attention(f->g, qkv, f->step, (int)c->n_head, kv_heads, true,
                       drop_at(f, site, DROPOUT_ATTENTION));
}

value gpt_logits(const struct gpt *m, struct graph *g, int64_t B, int64_t T, enum gpt_mode mode)
{
    struct pass_through f = {m, g, B, mode == GPT_TRAIN, mode == GPT_CACHED, {0}, {0}};
    value tokens = g_input(g, "tokens", type_2d(DT_I32, B, T));
    f.positions = g_input(g, "positions", type_1d(DT_I32, T));
    f.step = g_input(g, "step", type_scalar(DT_I32));

    struct graph_scope top = graph_enter(g, "wte", -1);
    value table = weight(&f, "weight"); /* (V,C) */
    value x = g_embed(g, table, tokens);
    graph_leave(g, top);
    graph_enter(g, "wpe", -1);
    x = g_add(g, x, g_embed(g, weight(&f, "weight"), f.positions)); /* (B,T,C) */
    graph_leave(g, top);
    x = drop(&f, 0, x);

    for (int l = 0; l < m->config.n_layer; l++) {
        char block[16];
        snprintf(block, sizeof block, "h.%d", l);
        struct graph_scope outside = graph_enter(g, block, l);
        value y = norm(&f, "ln_1", x);
        struct graph_scope inside = graph_enter(g, "attn", -1);
        y = linear(&f, "c_attn", y); /* (B,T,C+2*KV*D): q, k, v */
        y = attention(&f, 1 + 3 * l, y);
        y = linear(&f, "c_proj", y);
        graph_leave(g, inside);
        x = g_add(g, x, drop(&f, 2 + 3 * l, y));
        y = norm(&f, "ln_2", x);
        graph_enter(g, "mlp", -1);
        y = linear(&f, "c_fc", y); /* (B,T,4C) */
        y = g_gelu(g, y, m->config.gelu == GELU_TANH);
        y = linear(&f, "c_proj", y);
        graph_leave(g, inside);
        x = g_add(g, x, drop(&f, 3 + 3 * l, y));
        graph_leave(g, outside);
    }
    x = norm(&f, "ln_f", x);
    graph_enter(g, "lm_head", -1);
    value logits = g_matmul(g, x, table, false, true); /* (B,T,V) */
    graph_leave(g, top);
    return logits;
}

value gpt_loss(const struct gpt *m, struct graph *g, int64_t B, int64_t T, enum gpt_mode mode)
{
    value logits = gpt_logits(m, g, B, T, mode);
    value targets = g_input(g, "targets", type_2d(DT_I32, B, T));
    struct graph_scope top = graph_enter(g, "loss", -1);
    value loss = g_cross_entropy(g, logits, targets, m->vocab);
    graph_leave(g, top);
    return loss;
}

struct table {
    struct gpt *m;
    struct arena *a;
    int capacity;
};

static struct parameter *parameter(struct table *t, const char *name, struct type type, double mean,
                                   double std)
{
    struct gpt *m = t->m;
    ARENA_GROW(t->a, m->parameter, m->parameters, t->capacity);
    struct parameter *p = &m->parameter[m->parameters++];
    *p = (struct parameter){.name = name, .type = type, .decay = type.rank >= 2};
    p->product = p->decay;
    p->mean = mean;
    p->std = std;
    p->rows = type.dim[0];
    return p;
}

/* weight (in,out) or, for a norm, (out), and its bias. */
static void layer(struct table *t, const char *name, struct type type, double std)
{
    bool is_norm = type.rank == 1;
    parameter(t, arena_printf(t->a, "%s.weight", name), type, is_norm ? 1 : 0, std);
    if (t->m->config.bias)
        parameter(t, arena_printf(t->a, "%s.bias", name), type_1d(DT_F32, type_columns(&type)), 0,
                  0);
}

static void lay_out(struct gpt *m)
{
    m->elements = 0;
    for (int decay = 1; decay >= 0; decay--)
        for (int i = 0; i < m->parameters; i++) {
            struct parameter *p = &m->parameter[i];
            if (p->decay != (bool)decay) continue;
            p->offset = m->elements;
            m->elements += range_elements(&p->type);
        }
}

void gpt_init(struct gpt *m, const struct config_model *config, int64_t vocab, uint32_t seed,
              struct arena *a)
{
    *m = (struct gpt){.config = *config, .vocab = vocab, .padded_vocab = vocab, .seed = seed};
    int64_t C = config->n_embd, L = config->n_layer, qkv = C + 2 * key_columns(config),
            pad = config->pad_vocab;
    if (pad) m->padded_vocab = (vocab + pad - 1) / pad * pad;
    struct table t = {m, a, 0};
    double residual = INIT_STD / sqrt(2.0 * (double)L);
    parameter(&t, "wte.weight", type_2d(DT_F32, m->padded_vocab, C), 0, INIT_STD)->rows = vocab;
    parameter(&t, "wpe.weight", type_2d(DT_F32, config->block_size, C), 0, INIT_STD)->product =
        false;
    for (int l = 0; l < L; l++) {
        layer(&t, arena_printf(a, "h.%d.ln_1", l), type_1d(DT_F32, C), 0);
        layer(&t, arena_printf(a, "h.%d.attn.c_attn", l), type_2d(DT_F32, C, qkv), INIT_STD);
        layer(&t, arena_printf(a, "h.%d.attn.c_proj", l), type_2d(DT_F32, C, C), residual);
        layer(&t, arena_printf(a, "h.%d.ln_2", l), type_1d(DT_F32, C), 0);
        layer(&t, arena_printf(a, "h.%d.mlp.c_fc", l), type_2d(DT_F32, C, 4 * C), INIT_STD);
        layer(&t, arena_printf(a, "h.%d.mlp.c_proj", l), type_2d(DT_F32, 4 * C, C), residual);
    }
    layer(&t, "ln_f", type_1d(DT_F32, C), 0);
    lay_out(m);
}

int64_t gpt_count(const struct gpt *m, bool with_positions)
{
    int64_t n = 0;
    for (int i = 0; i < m->parameters; i++) {
        const struct parameter *p = &m->parameter[i];
        if (with_positions || strcmp(p->name, "wpe.weight"))
            n += type_elements(&p->type) / p->type.dim[0] * p->rows;
    }
    return n;
}

double gpt_flops_per_token(const struct gpt *m, int64_t T)
{
    double N = (double)gpt_count(m, false);
    return 6 * N + 12.0 * (double)(m->config.n_layer * m->config.n_embd * T);
}

/* Elements k ... k + n - 1 of parameter i. */
static void draw_some(const struct gpt *m, int i, int64_t k, int64_t n, float *ret)
{
    const struct parameter *p = &m->parameter[i];
    if (p->std > 0)
        rng_normals(m->seed, RNG_INIT, (uint32_t)i, (uint64_t)k, n, ret);
    else
        memset(ret, 0, (size_t)n * sizeof *ret);
    for (int64_t j = 0; j < n; j++) ret[j] = (float)(p->mean + p->std * (double)ret[j]);
}

enum { DRAWN_AT_ONCE = 4096 };

void gpt_draw(const struct gpt *m, float *weights)
{
    for (int i = 0; i < m->parameters; i++) {
        const struct parameter *p = &m->parameter[i];
        int64_t drawn = type_elements(&p->type) / p->type.dim[0] * p->rows;
        float *at = weights + p->offset;
#pragma omp parallel for
        for (int64_t k = 0; k < drawn; k += DRAWN_AT_ONCE)
            draw_some(m, i, k, drawn - k < DRAWN_AT_ONCE ? drawn - k : DRAWN_AT_ONCE, at + k);
        memset(at + drawn, 0, (size_t)(range_elements(&p->type) - drawn) * sizeof *at);
    }
}
