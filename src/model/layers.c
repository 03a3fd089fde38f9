#include "model/layers.h"

#include "graph/build.h"

#include <stdio.h>
#include <string.h>

static const double NORM_EPS = 1e-5;

struct parameter *model_parameter(struct model_parameters *l, const char *name, struct type type,
                                  double mean, double std)
{
    struct model *m = l->m;
    ARENA_GROW(l->arena, m->parameter, m->parameters, l->capacity);
    struct parameter *p = &m->parameter[m->parameters++];
    *p = (struct parameter){.name = name, .type = type, .decay = type.rank >= 2};
    p->matmul = p->decay;
    p->mean = mean;
    p->std = std;
    p->rows = type.dim[0];
    return p;
}

struct parameter *model_layer(struct model_parameters *l, const char *name, struct type type,
                              double std, bool bias)
{
    double mean = type.rank == 1 ? 1 : 0;
    struct type columns = type_1d(DT_F32, type_columns(&type));
    int weight = l->m->parameters;
    model_parameter(l, arena_printf(l->arena, "%s.weight", name), type, mean, std);
    if (bias) model_parameter(l, arena_printf(l->arena, "%s.bias", name), columns, 0, 0);
    return &l->m->parameter[weight];
}

static const struct parameter *find(const struct model *m, const struct graph *g, const char *name)
{
    char full[128];
    snprintf(full, sizeof full, "%s%s%s", g->scope, *g->scope ? "." : "", name);
    for (int i = 0; i < m->parameters; i++)
        if (!strcmp(m->parameter[i].name, full)) return &m->parameter[i];
    return NULL;
}

value model_weight(const struct model *m, struct graph *g, const char *name)
{
    if (g->st != ST_OK) return (value){0};
    const struct parameter *p = find(m, g, name);
    BUG_IF(!p, "no parameter %s in %s", name, g->scope);
    value known = graph_find_leaf(g, STORAGE_WEIGHTS, p->name);
    return known.i ? known : g_leaf(g, STORAGE_WEIGHTS, name, p->type, p->offset);
}

static value bias(const struct model *m, struct graph *g)
{
    return find(m, g, "bias") ? model_weight(m, g, "bias") : (value){0};
}

value model_linear(const struct model *m, struct graph *g, const char *name, value x)
{
    struct graph_scope here = graph_enter(g, name, -1);
    value w = model_weight(m, g, "weight");
    x = g_linear(g, x, w, bias(m, g), false);
    graph_leave(g, here);
    return x;
}

value model_norm(const struct model *m, struct graph *g, const char *name, value x)
{
    struct graph_scope here = graph_enter(g, name, -1);
    value w = model_weight(m, g, "weight");
    x = g_layernorm(g, x, w, bias(m, g), NORM_EPS);
    graph_leave(g, here);
    return x;
}

void model_pad_vocabulary(struct model *m)
{
    int64_t pad = m->config.pad_vocab;
    if (pad > 0) m->padded_vocab = round_up(m->padded_vocab, pad);
}

int64_t model_kv_heads(const struct config_model *c)
{
    return c->n_kv_head ? c->n_kv_head : c->n_head;
}

value model_attention(const struct model *m, struct graph *g, const struct model_attention *a,
                      value qkv)
{
    const struct config_model *c = &m->config;
    int kv_heads = c->n_kv_head == c->n_head ? 0 : (int)c->n_kv_head;
    if (!a->cached) return g_attention(g, qkv, a->step, (int)c->n_head, kv_heads, true, a->drop);
    int64_t columns = c->n_embd / c->n_head * model_kv_heads(c);
    struct type t = type_4d(DT_F32, 2, a->B, c->block_size, columns);
    value cache = g_leaf(g, STORAGE_CACHE, "cache", t, g->layer * type_elements(&t));
    return g_attention_cached(g, cache, qkv, a->positions, (int)c->n_head, kv_heads);
}

value model_cross_entropy(const struct model *m, struct graph *g, value logits, value targets)
{
    struct graph_scope top = graph_enter(g, "loss", -1);
    value loss = g_cross_entropy(g, logits, targets, m->vocab);
    graph_leave(g, top);
    return loss;
}

value model_loss_of_logits(const struct model *m, struct graph *g, int64_t B, int64_t T,
                           enum model_mode mode)
{
    value logits = m->def->logits(m, g, B, T, mode);
    return model_cross_entropy(m, g, logits, g_input(g, "targets", type_2d(DT_I32, B, T)));
}

enum status model_check_heads(const struct config_model *c)
{
    if (c->n_embd % c->n_head == 0) return ST_OK;
    return fail(ST_USAGE, "n_embd = %lld is not divisible by n_head = %lld; change one of them",
                (long long)c->n_embd, (long long)c->n_head);
}

enum status model_check_groups(const struct config_model *c)
{
    TRY(model_check_heads(c));
    if (!c->n_kv_head || c->n_head % c->n_kv_head == 0) return ST_OK;
    return fail(ST_USAGE, "n_head = %lld is not divisible by n_kv_head = %lld; change one of them",
                (long long)c->n_head, (long long)c->n_kv_head);
}

double model_flops_by_size(const struct model *m, int64_t T)
{
    double N = (double)model_count(m, false);
    return 6 * N + 12.0 * (double)(m->config.n_layer * m->config.n_embd * T);
}
