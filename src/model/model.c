#include "model/model.h"

#include "base/rng.h"
#include "model/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* THE table of models. */
static const struct model_def *const models[] = {
    [MODEL_GPT] = &model_gpt,
    [MODEL_CS336] = &model_cs336,
    [MODEL_ATTENTION_BLOCK] = &model_attention_block,
    [MODEL_ELU] = &model_elu,
    [MODEL_TOY] = &model_toy,
};

const struct model_def *model_def(const struct config_model *c)
{
    return models[c->kind];
}

enum status model_check(const struct config *c)
{
    const struct model_def *def = model_def(&c->model);
    const struct config_model *m = &c->model;
    TRY(config_check(c));
    if (!model_reads(m, "attention_mask") &&
        (m->attention_mask == ATTENTION_MASK_CAUSAL || m->attention_scale == ATTENTION_SCALE_NONE))
        return fail(ST_USAGE,
                    "attention_mask and attention_scale are keys of model = attention_block; "
                    "remove them from the configuration of model = %s",
                    model_words[m->kind]);
    return def->check ? def->check(&c->model) : ST_OK;
}

enum status model_check_trained(const struct config_model *c)
{
    if (model_def(c)->trained) return ST_OK;
    return fail(ST_UNSUPPORTED,
                "model = %s cannot be trained, only timed on random inputs: use `strobe "
                "bench` to time its step",
                model_words[c->kind]);
}

enum status model_check_vocabulary(const struct config_model *c, int64_t vocab)
{
    if (!c->vocab_size || vocab <= c->vocab_size) return ST_OK;
    return fail(ST_USAGE,
                "the text has %lld distinct tokens, more than vocab_size = %lld; set vocab_size = "
                "0 to use the number in the text",
                (long long)vocab, (long long)c->vocab_size);
}

bool model_reads(const struct config_model *c, const char *key)
{
    for (const char *const *k = model_def(c)->keys; *k; k++)
        if (!strcmp(*k, key)) return true;
    return false;
}

int64_t model_layers(const struct config_model *c)
{
    return model_reads(c, "n_layer") ? c->n_layer : model_def(c)->layers;
}

/* Appends parameters from ... to - 1 to the range, parameters with weight decay first. */
static void assign_offsets(struct model *m, int from, int to)
{
    for (int decay = 1; decay >= 0; decay--)
        for (int i = from; i < to; i++) {
            struct parameter *p = &m->parameter[i];
            if (p->decay != (bool)decay) continue;
            p->offset = m->elements;
            m->elements += range_elements(&p->type);
        }
}

int model_parameter_layer(const struct parameter *p)
{
    return strncmp(p->name, "h.", 2) == 0 ? (int)strtol(p->name + 2, NULL, 10) : -1;
}

void model_cut(struct model *m, int ranks, struct arena *a)
{
    int64_t *unit = ARENA_NEW(a, int64_t, m->parameters + 1);
    m->elements = m->units = 0;
    m->unit = unit;
    for (int from = 0, to; from < m->parameters; from = to) {
        int layer = model_parameter_layer(&m->parameter[from]);
        for (to = from; to < m->parameters; to++)
            if (model_parameter_layer(&m->parameter[to]) != layer) break;
        assign_offsets(m, from, to);
        m->elements = round_up(m->elements, (int64_t)ranks * RANGE_ALIGNMENT);
        unit[++m->units] = m->elements;
    }
}

void model_init(struct model *m, const struct config_model *config, int64_t vocab, uint32_t seed,
                struct arena *a)
{
    *m = (struct model){.def = model_def(config), .config = *config, .seed = seed};
    m->vocab = m->padded_vocab = max_i64(vocab, config->vocab_size);
    struct model_parameters p = {m, a, 0};
    m->def->lay_out(m, &p);
    assign_offsets(m, 0, m->parameters);
}

int model_matrix(const struct model *m, int i, struct type *ret_type)
{
    const struct parameter *p = &m->parameter[i];
    *ret_type = p->type;
    for (int k = 1; k < p->joined; k++) {
        if (p[k].offset != p[k - 1].offset + type_elements(&p[k - 1].type)) {
            *ret_type = p->type;
            return 1;
        }
        ret_type->dim[0] += p[k].type.dim[0];
    }
    return p->joined ? p->joined : 1;
}

static int64_t generated_elements(const struct parameter *p)
{
    return type_elements(&p->type) / p->type.dim[0] * p->rows;
}

int64_t model_count(const struct model *m, bool with_positions)
{
    int64_t n = 0;
    for (int i = 0; i < m->parameters; i++)
        if (with_positions || !m->parameter[i].positions) n += generated_elements(&m->parameter[i]);
    return n;
}

double model_flops_per_token(const struct model *m, int64_t T)
{
    return m->def->flops_per_token ? m->def->flops_per_token(m, T) : 0;
}

/* Generates element k again, from sequences that no parameter uses, until its magnitude is within
 * the cut. */
static float truncate_normal(const struct model *m, int i, int64_t k, float normal)
{
    int sequence = i;
    while (fabs((double)normal) > m->parameter[i].cut) {
        sequence += m->parameters;
        normal = rng_normal(m->seed, RNG_INIT, (uint32_t)sequence, (uint64_t)k);
    }
    return normal;
}

static void generate(const struct model *m, int i, int64_t k, int64_t n, float *ret)
{
    const struct parameter *p = &m->parameter[i];
    if (p->std > 0)
        rng_normals(m->seed, RNG_INIT, (uint32_t)i, (uint64_t)k, n, ret);
    else
        memset(ret, 0, (size_t)n * sizeof *ret);
    for (int64_t j = 0; j < n; j++) {
        if (p->cut > 0) ret[j] = truncate_normal(m, i, k + j, ret[j]);
        ret[j] = (float)(p->mean + p->std * (double)ret[j]);
    }
}

enum { CHUNK_ELEMENTS = 4096 };

void model_init_part(const struct model *m, int64_t first, int64_t end, float *part)
{
    memset(part, 0, (size_t)(end - first) * sizeof *part);
    for (int i = 0; i < m->parameters; i++) {
        const struct parameter *p = &m->parameter[i];
        if (p->offset < first || p->offset >= end) continue;
        int64_t n = generated_elements(p);
        float *at = part + p->offset - first;
#pragma omp parallel for
        for (int64_t k = 0; k < n; k += CHUNK_ELEMENTS)
            generate(m, i, k, n - k < CHUNK_ELEMENTS ? n - k : CHUNK_ELEMENTS, at + k);
    }
}

void model_init_weights(const struct model *m, float *weights)
{
    model_init_part(m, 0, m->elements, weights);
}
