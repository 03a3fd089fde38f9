#include "hf.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

static const char prefix[] = "transformer.";

static const char *const keys[][2] = {
    {"model_type", "\"gpt2\""},
    {"activation_function", "\"gelu_new\""},
    {"layer_norm_epsilon", "1e-05"},
    {"n_layer", "2"},
    {"n_head", "2"},
    {"n_embd", "8"},
    {"n_positions", "6"},
    {"vocab_size", "11"},
    {"n_inner", "null"},
    {"tie_word_embeddings", "true"},
    {"architectures", "[\"GPT2LMHeadModel\"]"},
};

static const struct {
    const char *name;
    int64_t rows, columns; /* rows 0: one dimension */
} layer[] = {
    {"ln_1.weight", 0, HF_EMBD},
    {"ln_1.bias", 0, HF_EMBD},
    {"attn.c_attn.weight", HF_EMBD, 3 * HF_EMBD},
    {"attn.c_attn.bias", 0, 3 * HF_EMBD},
    {"attn.c_proj.weight", HF_EMBD, HF_EMBD},
    {"attn.c_proj.bias", 0, HF_EMBD},
    {"ln_2.weight", 0, HF_EMBD},
    {"ln_2.bias", 0, HF_EMBD},
    {"mlp.c_fc.weight", HF_EMBD, 4 * HF_EMBD},
    {"mlp.c_fc.bias", 0, 4 * HF_EMBD},
    {"mlp.c_proj.weight", 4 * HF_EMBD, HF_EMBD},
    {"mlp.c_proj.bias", 0, HF_EMBD},
};

/* Multiples of 1/64 between -2 and 2. */
static void add_values(struct hf *h, const char *name, int64_t rows, int64_t columns)
{
    int64_t n = columns * (rows ? rows : 1);
    const int64_t dim[] = {rows ? rows : columns, columns};
    float *data = ARENA_NEW(&h->arena, float, n);
    for (int64_t k = 0; k < n; k++) data[k] = (float)((k * 37 + h->tensors * 101) % 251 - 125) / 64;
    hf_add(h, arena_printf(&h->arena, "%s%s", prefix, name), SAFETENSORS_F32, rows ? 2 : 1, dim,
           data);
}

void hf_init(struct hf *h)
{
    h->keys = h->tensors = 0;
    for (int i = 0; i < COUNT_OF(keys); i++) hf_set(h, keys[i][0], keys[i][1]);
    add_values(h, "wte.weight", HF_VOCAB, HF_EMBD);
    add_values(h, "wpe.weight", HF_POSITIONS, HF_EMBD);
    for (int l = 0; l < HF_LAYERS; l++)
        for (int i = 0; i < COUNT_OF(layer); i++)
            add_values(h, arena_printf(&h->arena, "h.%d.%s", l, layer[i].name), layer[i].rows,
                       layer[i].columns);
    add_values(h, "ln_f.weight", 0, HF_EMBD);
    add_values(h, "ln_f.bias", 0, HF_EMBD);
    BUG_IF(h->tensors != HF_TENSORS, "%d tensors", h->tensors);
}

void hf_release(struct hf *h)
{
    arena_release(&h->arena);
}

void hf_set(struct hf *h, const char *key, const char *value)
{
    int i = 0;
    while (i < h->keys && strcmp(h->key[i].key, key)) i++;
    BUG_IF(i == COUNT_OF(h->key), "too many keys");
    h->key[i].key = key;
    h->key[i].value = value;
    if (i == h->keys) h->keys++;
}

const char *hf_config(struct hf *h)
{
    const char *text = "{", *comma = "";
    for (int i = 0; i < h->keys; i++) {
        if (!h->key[i].value) continue;
        text = arena_printf(&h->arena, "%s%s\n \"%s\": %s", text, comma, h->key[i].key,
                            h->key[i].value);
        comma = ",";
    }
    return arena_printf(&h->arena, "%s\n}\n", text);
}

struct safetensor *hf_tensor(struct hf *h, const char *name)
{
    for (int i = 0; i < h->tensors; i++)
        if (!strcmp(h->tensor[i].name + sizeof prefix - 1, name)) return &h->tensor[i];
    bug(__FILE__, __LINE__, "there is no tensor %s", name);
}

void hf_remove(struct hf *h, const char *name)
{
    struct safetensor *t = hf_tensor(h, name);
    int64_t after = &h->tensor[h->tensors--] - (t + 1);
    memmove(t, t + 1, (size_t)after * sizeof *t);
}

struct safetensor *hf_add(struct hf *h, const char *name, enum safetensors_type type, int rank,
                          const int64_t *dim, const void *data)
{
    BUG_IF(h->tensors == COUNT_OF(h->tensor), "too many tensors");
    struct safetensor *t = &h->tensor[h->tensors++];
    *t = (struct safetensor){.name = name, .type = type, .rank = rank, .data = data};
    if (rank) memcpy(t->dim, dim, (size_t)rank * sizeof *dim);
    return t;
}

void hf_narrow(struct hf *h, struct safetensor *t, enum safetensors_type type)
{
    int64_t n = 1;
    for (int d = 0; d < t->rank; d++) n *= t->dim[d];
    uint16_t *narrow = ARENA_NEW(&h->arena, uint16_t, n);
    for (int64_t k = 0; k < n; k++) {
        uint32_t bits;
        memcpy(&bits, (const float *)t->data + k, sizeof bits);
        uint32_t exponent = bits >> 23 & 255, half = (exponent - 112) << 10 | (bits >> 13 & 1023);
        if (type == SAFETENSORS_BF16)
            narrow[k] = (uint16_t)(bits >> 16);
        else
            narrow[k] = (uint16_t)(bits >> 31 << 15 | (exponent ? half : 0));
    }
    t->data = narrow;
    t->type = type;
}

void hf_write_config(struct hf *h, const char *folder)
{
    const char *text = hf_config(h);
    enum status st =
        file_write(arena_printf(&h->arena, "%s/config.json", folder), text, (int64_t)strlen(text));
    BUG_IF(st != ST_OK, "%s", fail_message());
}

void hf_write_tensors(struct hf *h, const char *folder, const char *name, int from, int to)
{
    const char *path = arena_printf(&h->arena, "%s/%s", folder, name);
    enum status st = safetensors_write(path, h->tensor + from, to - from, NULL);
    BUG_IF(st != ST_OK, "%s", fail_message());
}

void hf_write(struct hf *h, const char *folder)
{
    BUG_IF(file_make_dirs(folder) != ST_OK, "%s", fail_message());
    hf_write_config(h, folder);
    hf_write_tensors(h, folder, "model.safetensors", 0, h->tensors);
}
