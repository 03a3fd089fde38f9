/* Reads Hugging Face's folder of a GPT-2: config.json, and model.safetensors,
 * model.safetensors.index.json (weights in several files) or pytorch_model.bin. Matrices are stored
 * as in Hugging Face's Conv1D, (in,out), as in Strobe. */
#include "exchange/huggingface.h"

#include "base/file.h"
#include "base/json.h"
#include "exchange/exchange.h"
#include "exchange/torch_model.h"

#include <math.h>
#include <string.h>

enum { CONFIG_BYTES_MOST = 1 << 20, INDEX_BYTES_MOST = 1 << 22, FILES_MOST = 1024 };

static bool is_folder(const char *path, struct arena *a)
{
    return file_is_dir(path) && file_exists(arena_printf(a, "%s/config.json", path));
}

static enum status read_json(const char *path, int64_t most, json_t **ret, struct arena *a)
{
    char *text;
    int64_t bytes;
    json_error_t e;
    TRY(file_read_most(path, most, a, &text, &bytes));
    *ret = json_loadb(text, (size_t)bytes, JSON_REJECT_DUPLICATES, &e);
    if (*ret && json_is_object(*ret)) return ST_OK;
    bool parsed = *ret;
    json_decref(*ret);
    return parsed ? fail(ST_FORMAT, "%s is not a JSON object", path)
                  : fail(ST_FORMAT, "%s is not JSON: line %d: %s", path, e.line, e.text);
}

/* --- config.json ------------------------------------------------------------------------------ */

/* Keys of which Strobe's GPT supports only one value. */
static const struct {
    const char *key;
    bool wanted, if_missing;
    const char *other; /* for the message: what the unsupported value means */
} switches[] = {
    {"scale_attn_weights", true, true, "does not scale attention by the size of a head"},
    {"scale_attn_by_inverse_layer_idx", false, false, "scales attention by the number of a layer"},
    {"add_cross_attention", false, false, "has cross-attention"},
};

static const struct {
    const char *name;
    const char *ours; /* the value of gelu */
} activations[] = {
    {"gelu_new", "tanh"},
    {"gelu_pytorch_tanh", "tanh"},
    {"gelu_python_tanh", "tanh"},
    {"gelu_fast", "tanh"},
    {"gelu", "erf"},
    {"gelu_python", "erf"},
};

static const struct {
    const char *key, *ours;
} sizes[] = {
    {"n_layer", "n_layer"},        {"n_head", "n_head"},         {"n_embd", "n_embd"},
    {"n_positions", "block_size"}, {"vocab_size", "vocab_size"},
};

static enum status read_sizes(struct exchange_model *m, const char *path, const json_t *root,
                              struct arena *a)
{
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        const json_t *size = json_object_get(root, sizes[i].key);
        if (!json_is_integer(size) || json_integer_value(size) < 1)
            return fail(ST_FORMAT, "%s: %s is missing or is not a positive integer", path,
                        sizes[i].key);
        const char *size_text = arena_printf(a, "%lld", (long long)json_integer_value(size));
        TRY(exchange_set(m, path, sizes[i].ours, size_text, a));
    }
    const json_t *inner = json_object_get(root, "n_inner");
    int64_t wanted = 4 * m->config.model.n_embd;
    if (!inner || json_is_null(inner)) return ST_OK;
    if (!json_is_integer(inner)) return fail(ST_FORMAT, "%s: n_inner is not an integer", path);
    if (json_integer_value(inner) == wanted) return ST_OK;
    return fail(ST_UNSUPPORTED, "%s: n_inner is %lld; Strobe's GPT supports only 4 n_embd, %lld",
                path, (long long)json_integer_value(inner), (long long)wanted);
}

static enum status read_activation(struct exchange_model *m, const char *path, const json_t *root,
                                   struct arena *a)
{
    const json_t *item = json_object_get(root, "activation_function");
    const char *name = item ? json_string_value(item) : activations[0].name;
    if (!name) return fail(ST_FORMAT, "%s: activation_function is not a string", path);
    for (int i = 0; i < COUNT_OF(activations); i++)
        if (!strcmp(activations[i].name, name))
            return exchange_set(m, path, "gelu", activations[i].ours, a);
    return fail(ST_UNSUPPORTED, "%s: activation_function is %.40s; Strobe's GPT supports only GELU",
                path, name);
}

static enum status check_rest(const char *path, const json_t *root)
{
    static const double eps = 1e-5;
    const json_t *type = json_object_get(root, "model_type");
    const json_t *norm = json_object_get(root, "layer_norm_epsilon");
    if (!json_is_string(type) || strcmp(json_string_value(type), "gpt2"))
        return fail(ST_UNSUPPORTED, "%s: model_type is %.40s; only gpt2 is read", path,
                    json_is_string(type) ? json_string_value(type) : "missing");
    if (norm && !json_is_number(norm))
        return fail(ST_FORMAT, "%s: layer_norm_epsilon is not a number", path);
    if (norm && fabs(json_number_value(norm) - eps) > 1e-6 * eps)
        return fail(ST_UNSUPPORTED, "%s: layer_norm_epsilon is %g; Strobe computes with 1e-5", path,
                    json_number_value(norm));
    for (int i = 0; i < COUNT_OF(switches); i++) {
        const json_t *item = json_object_get(root, switches[i].key);
        bool is = item ? json_is_true(item) : switches[i].if_missing;
        if (item && !json_is_boolean(item))
            return fail(ST_FORMAT, "%s: %s is neither true nor false", path, switches[i].key);
        if (is != switches[i].wanted)
            return fail(
                ST_UNSUPPORTED, "%s: %s is %s; Strobe's GPT supports only %s (the model %s)", path,
                switches[i].key, is ? "true" : "false", is ? "false" : "true", switches[i].other);
    }
    return ST_OK;
}

static enum status read_config(struct exchange_model *m, const char *path, const json_t *root,
                               struct arena *a)
{
    m->config.model.bias = true;
    TRY(check_rest(path, root));
    TRY(read_sizes(m, path, root, a));
    TRY(read_activation(m, path, root, a));
    m->vocab = m->config.model.vocab_size;
    return ST_OK;
}

/* --- tensors ---------------------------------------------------------------------------------- */

/* Whether a tensor is an attention mask, which older versions of transformers saved, such as
 * "h.0.attn.bias". */
static bool is_mask(const char *name)
{
    const char *dot = strrchr(name, '.');
    bool named = dot && (!strcmp(dot, ".bias") || !strcmp(dot, ".masked_bias"));
    return named && dot - name >= 5 && !memcmp(dot - 5, ".attn", 5);
}

static const char *bare_name(const char *name)
{
    static const char prefix[] = "transformer.";
    bool prefixed = !strncmp(name, prefix, sizeof prefix - 1);
    return name + (prefixed ? sizeof prefix - 1 : 0);
}

/* Adds the tensors of a file; `m` keeps its descriptor. */
static enum status open_file(struct exchange_model *m, const char *path, struct arena *a)
{
    struct safetensors s;
    TRY(safetensors_open(&s, path, a));
    m->file[m->files++] = (struct exchange_file){s.path, s.fd};
    for (int i = 0; i < s.count; i++) {
        struct exchange_tensor x = exchange_from_safetensor(m, &s.tensor[i]);
        x.name = bare_name(x.name);
        if (!is_mask(x.name)) exchange_add(m, x, a);
    }
    return ST_OK;
}

static bool opened(const struct exchange_model *m, const char *path)
{
    for (int i = 0; i < m->files; i++)
        if (!strcmp(m->file[i].path, path)) return true;
    return false;
}

static enum status open_files(struct exchange_model *m, const char *index, const json_t *map,
                              struct arena *a)
{
    const char *tensor;
    json_t *item;
    if (!json_is_object(map)) return fail(ST_FORMAT, "%s has no \"weight_map\"", index);
    json_object_foreach((json_t *)map, tensor, item) {
        const char *name = json_string_value(item);
        if (!name || !*name || *name == '.' || strchr(name, '/'))
            return fail(ST_FORMAT, "%s: the file of tensor %.80s must be a name without folders",
                        index, tensor);
        const char *path = arena_printf(a, "%s/%s", m->path, name);
        if (opened(m, path)) continue;
        if (m->files == FILES_MOST)
            return fail(ST_UNSUPPORTED, "%s names more than %d files", index, FILES_MOST);
        TRY(open_file(m, path, a));
    }
    return ST_OK;
}

static enum status open_index(struct exchange_model *m, const char *index, struct arena *a)
{
    json_t *root;
    TRY(read_json(index, INDEX_BYTES_MOST, &root, a));
    enum status st = open_files(m, index, json_object_get(root, "weight_map"), a);
    json_decref(root);
    return st;
}

/* Reads pytorch_model.bin, which older versions of transformers wrote. */
static enum status open_pickled(struct exchange_model *m, const char *path, struct arena *a)
{
    TRY(torch_model_open(m, path, a));
    const struct pickle_value *root = torch_model_root(m);
    if (root->type != PICKLE_DICT) return fail(ST_FORMAT, "%s is not a dictionary", path);
    for (int i = 0; i < root->dict->count; i++) {
        const struct pickle_item *item = &root->dict->item[i];
        const char *name = torch_model_text(&item->key, a);
        if (!name) return fail(ST_FORMAT, "%s: the name of a tensor is not text", path);
        name = bare_name(name);
        if (!is_mask(name)) TRY(torch_model_add(m, name, EXCHANGE_WEIGHT, false, &item->value, a));
    }
    return ST_OK;
}

static enum status open_weights(struct exchange_model *m, struct arena *a)
{
    const char *one = arena_printf(a, "%s/model.safetensors", m->path);
    const char *index = arena_printf(a, "%s/model.safetensors.index.json", m->path);
    const char *pickled = arena_printf(a, "%s/pytorch_model.bin", m->path);
    m->file = ARENA_NEW(a, struct exchange_file, FILES_MOST);
    if (file_exists(one)) return open_file(m, one, a);
    if (file_exists(index)) return open_index(m, index, a);
    if (file_exists(pickled)) return open_pickled(m, pickled, a);
    return fail(ST_FORMAT,
                "%s has no model.safetensors, model.safetensors.index.json or pytorch_model.bin",
                m->path);
}

static bool has_tokenizer(const char *folder, struct arena *a)
{
    return file_exists(arena_printf(a, "%s/tokenizer.json", folder)) ||
           file_exists(arena_printf(a, "%s/vocab.json", folder));
}

static enum status open_folder(struct exchange_model *m, struct arena *a)
{
    const char *path = arena_printf(a, "%s/config.json", m->path);
    json_t *root;
    TRY(read_json(path, CONFIG_BYTES_MOST, &root, a));
    const json_t *tie = json_object_get(root, "tie_word_embeddings");
    bool tied = !json_is_false(tie);
    enum status st =
        tie && !json_is_boolean(tie)
            ? fail(ST_FORMAT, "%s: tie_word_embeddings is neither true nor false", path)
            : read_config(m, path, root, a);
    json_decref(root);
    if (st == ST_OK) st = open_weights(m, a);
    if (st == ST_OK) st = exchange_sort(m);
    if (st == ST_OK) st = exchange_drop_head(m, tied);
    if (has_tokenizer(m->path, a)) m->tokenizer = m->path;
    return st;
}

const struct exchange_format exchange_huggingface = {
    .name = "hf",
    .ending = "-hf",
    .what = "a folder of Hugging Face",
    .is = is_folder,
    .open = open_folder,
    .verify = torch_model_verify,
    .write = huggingface_write,
};
