#include "base/folder.h"
#include "base/json.h"
#include "base/log.h"
#include "base/utf8.h"
#include "data/kind.h"
#include "exchange/huggingface.h"
#include "text/tokenizer.h"

#include <string.h>

/* Nine digits, so that 1e-05 is not written with 17 digits. */
#define CONFIG_FLAGS (JSON_INDENT(2) | JSON_REAL_PRECISION(9))

static const char end_of_text[] = "<|endoftext|>";

/* --- config.json ------------------------------------------------------------------------------ */

static json_t *config_json_of(const struct config *c, int64_t end)
{
    const struct config_model *m = &c->model;
    json_t *id = end < 0 ? json_null() : json_integer(end);
    json_t *j = json_pack(
        "{s:[s], s:s, s:s, s:f, s:O, s:s, s:f, s:o, s:f, s:f, s:I, s:I, s:n, s:I, s:I, s:f, s:b, "
        "s:b, s:I}",
        "architectures", "GPT2LMHeadModel", "model_type", "gpt2", "activation_function",
        m->gelu == GELU_TANH ? "gelu_new" : "gelu", "attn_pdrop", m->dropout, "bos_token_id", id,
        "dtype", "float32", "embd_pdrop", m->dropout, "eos_token_id", id, "initializer_range", 0.02,
        "layer_norm_epsilon", 1e-5, "n_embd", (json_int_t)m->n_embd, "n_head",
        (json_int_t)m->n_head, "n_inner", "n_layer", (json_int_t)m->n_layer, "n_positions",
        (json_int_t)m->block_size, "resid_pdrop", m->dropout, "scale_attn_weights", 1,
        "tie_word_embeddings", 1, "vocab_size", (json_int_t)m->vocab_size);
    json_decref(id);
    return j;
}

enum status huggingface_write_config(const struct config *c, const char *path)
{
    return json_write(config_json_of(c, -1), CONFIG_FLAGS, path);
}

/* --- model.safetensors ------------------------------------------------------------------------ */

struct tensors {
    struct safetensor *list;
    int count;
    struct arena *a;
};

static void add_tensor(struct tensors *t, const char *name, int rank, const int64_t *dim,
                       const float *data)
{
    struct safetensor x = {.name = arena_printf(t->a, "transformer.%s", name),
                           .type = SAFETENSORS_F32,
                           .rank = rank,
                           .data = data};
    memcpy(x.dim, dim, (size_t)rank * sizeof *dim);
    t->list[t->count++] = x;
}

/* Adds a bias of zeros, since GPT2LMHeadModel needs biases in all layers. */
static void add_zeros(struct tensors *t, const struct exchange_values *v)
{
    int64_t columns = v->dim[v->rank - 1];
    const char *layer = arena_printf(t->a, "%.*s", (int)(strrchr(v->name, '.') - v->name), v->name);
    if (!strcmp(layer, "wte") || !strcmp(layer, "wpe")) return;
    add_tensor(t, arena_printf(t->a, "%s.bias", layer), 1, &columns,
               ARENA_NEW(t->a, float, columns));
}

static enum status write_tensors(const struct exchange_source *s, const char *folder,
                                 struct arena *a)
{
    struct tensors t = {.list = ARENA_NEW(a, struct safetensor, 2 * s->count), .a = a};
    for (int i = 0; i < s->count; i++) {
        const struct exchange_values *v = &s->values[i];
        add_tensor(&t, v->name, v->rank, v->dim, v->part[EXCHANGE_WEIGHT]);
        if (!s->config->model.bias) add_zeros(&t, v);
    }
    return safetensors_write(arena_printf(a, "%s/model.safetensors", folder), t.list, t.count,
                             NULL);
}

/* --- the tokenizer ---------------------------------------------------------------------------- */

static json_t *tokenizer_config_json(const struct exchange_source *s, int64_t end)
{
    json_t *j = json_pack("{s:s, s:b, s:I}", "tokenizer_class", "PreTrainedTokenizerFast",
                          "clean_up_tokenization_spaces", 0, "model_max_length",
                          (json_int_t)s->config->model.block_size);
    static const char *const roles[] = {"bos_token", "eos_token"};
    for (int i = 0; end >= 0 && i < COUNT_OF(roles); i++)
        json_object_set_new(j, roles[i], json_string(end_of_text));
    return j;
}

static enum status write_json(const char *folder, const char *name, json_t *root, size_t flags,
                              struct arena *a)
{
    return json_write(root, flags, arena_printf(a, "%s/%s", folder, name));
}

static enum status write_tokenizer(const struct exchange_source *s, const char *folder, int64_t end,
                                   struct arena *a)
{
    const struct vocabulary *v = s->vocabulary;
    if (!v->tokenizer && v->kind != &data_characters) return ST_OK;
    json_t *tokenizer = v->tokenizer ? tokenizer_json(v->tokenizer) : exchange_characters_json(v);
    TRY(write_json(folder, "tokenizer.json", tokenizer, JSON_COMPACT, a));
    return write_json(folder, "tokenizer_config.json", tokenizer_config_json(s, end),
                      JSON_INDENT(2), a);
}

/* --- the folder ------------------------------------------------------------------------------- */

static enum status write_files(const struct exchange_source *s, const char *folder, struct arena *a)
{
    const struct tokenizer *t = s->vocabulary->tokenizer;
    int64_t end = t ? tokenizer_special(t, end_of_text) : -1;
    TRY(write_tensors(s, folder, a));
    TRY(write_tokenizer(s, folder, end, a));
    return write_json(folder, "config.json", config_json_of(s->config, end), CONFIG_FLAGS, a);
}

enum status huggingface_write(const struct exchange_source *s, const char *path, struct arena *a)
{
    struct folder_writer w;
    TRY(file_make_parent(path));
    TRY(folder_writer_open(&w, path, OWN_MODEL));
    enum status st = write_files(s, w.temporary, a);
    if (st == ST_OK)
        st = folder_writer_commit(&w);
    else
        folder_writer_discard(&w);
    if (st == ST_OK && !s->config->model.bias)
        log_info("%s has no biases, and a GPT2LMHeadModel always has: those written are zeros",
                 s->from);
    return st;
}
