#include "ckpt.h"

#include <string.h>

static const char prefix[] = "transformer.";

static const struct {
    const char *name;
    int64_t out, in; /* in 0: one dimension */
    bool bias;
} layer[] = {
    {"ln_1.weight", CKPT_EMBD, 0, false},
    {"ln_1.bias", CKPT_EMBD, 0, true},
    {"attn.c_attn.weight", 3 * CKPT_EMBD, CKPT_EMBD, false},
    {"attn.c_attn.bias", 3 * CKPT_EMBD, 0, true},
    {"attn.c_proj.weight", CKPT_EMBD, CKPT_EMBD, false},
    {"attn.c_proj.bias", CKPT_EMBD, 0, true},
    {"ln_2.weight", CKPT_EMBD, 0, false},
    {"ln_2.bias", CKPT_EMBD, 0, true},
    {"mlp.c_fc.weight", 4 * CKPT_EMBD, CKPT_EMBD, false},
    {"mlp.c_fc.bias", 4 * CKPT_EMBD, 0, true},
    {"mlp.c_proj.weight", CKPT_EMBD, 4 * CKPT_EMBD, false},
    {"mlp.c_proj.bias", CKPT_EMBD, 0, true},
};

static const float *draw(struct ckpt *c, int64_t n, int seed)
{
    float *data = ARENA_NEW(&c->arena, float, n);
    for (int64_t k = 0; k < n; k++) data[k] = (float)((k * 37 + seed * 101) % 251 - 125) / 64;
    return data;
}

static void add_parameter(struct ckpt *c, const char *name, int64_t out, int64_t in)
{
    const char *whole = arena_printf(&c->arena, "%s%s", prefix, name);
    ckpt_add(c, whole, in ? 2 : 1, (int64_t[]){out, in});
}

void ckpt_init(struct ckpt *c, bool bias)
{
    *c = (struct ckpt){.arena = c->arena, .bias = bias};
    add_parameter(c, "wte.weight", CKPT_VOCAB, CKPT_EMBD);
    add_parameter(c, "wpe.weight", CKPT_POSITIONS, CKPT_EMBD);
    for (int l = 0; l < CKPT_LAYERS; l++)
        for (int i = 0; i < COUNT_OF(layer); i++)
            if (bias || !layer[i].bias)
                add_parameter(c, arena_printf(&c->arena, "h.%d.%s", l, layer[i].name), layer[i].out,
                              layer[i].in);
    add_parameter(c, "ln_f.weight", CKPT_EMBD, 0);
    if (bias) add_parameter(c, "ln_f.bias", CKPT_EMBD, 0);
    ckpt_add(c, "lm_head.weight", 2, (int64_t[]){CKPT_VOCAB, CKPT_EMBD})->same_as = "wte.weight";
    ckpt_set(c, "n_layer", CKPT_VALUE("K\2"));
    ckpt_set(c, "n_head", CKPT_VALUE("K\3"));
    ckpt_set(c, "n_embd", CKPT_VALUE("K\x9"));
    ckpt_set(c, "block_size", CKPT_VALUE("K\5"));
    ckpt_set(c, "bias", bias ? CKPT_VALUE("\x88") : CKPT_VALUE("\x89"));
    ckpt_set(c, "vocab_size", CKPT_VALUE("K\xb"));
    ckpt_set(c, "dropout", CKPT_VALUE("G\0\0\0\0\0\0\0\0"));
}

void ckpt_release(struct ckpt *c)
{
    arena_release(&c->arena);
}

void ckpt_set(struct ckpt *c, const char *key, struct ckpt_value value)
{
    int i = 0;
    while (i < c->args && strcmp(c->arg[i].key, key)) i++;
    BUG_IF(i == COUNT_OF(c->arg), "too many arguments");
    c->arg[i].key = key;
    c->arg[i].value = value;
    if (i == c->args) c->args++;
}

static const char *short_name(const char *name)
{
    const char *found = strstr(name, prefix);
    return found ? found + sizeof prefix - 1 : name;
}

struct ckpt_tensor *ckpt_tensor(struct ckpt *c, const char *name)
{
    for (int i = 0; i < c->tensors; i++)
        if (!strcmp(short_name(c->tensor[i].name), name)) return &c->tensor[i];
    bug(__FILE__, __LINE__, "there is no tensor %s", name);
}

void ckpt_remove(struct ckpt *c, const char *name)
{
    struct ckpt_tensor *t = ckpt_tensor(c, name);
    int64_t after = &c->tensor[c->tensors--] - (t + 1);
    memmove(t, t + 1, (size_t)after * sizeof *t);
}

int64_t ckpt_elements(const struct ckpt_tensor *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->rank; d++) n *= t->dim[d];
    return n;
}

struct ckpt_tensor *ckpt_add(struct ckpt *c, const char *name, int rank, const int64_t *dim)
{
    BUG_IF(c->tensors == CKPT_TENSORS_MOST, "too many tensors");
    struct ckpt_tensor *t = &c->tensor[c->tensors++];
    *t = (struct ckpt_tensor){.name = name, .rank = rank};
    memcpy(t->dim, dim, (size_t)rank * sizeof *dim);
    t->data = draw(c, ckpt_elements(t), c->tensors);
    return t;
}

void ckpt_prefix(struct ckpt *c, const char *before)
{
    for (int i = 0; i < c->tensors; i++)
        c->tensor[i].name = arena_printf(&c->arena, "%s%s", before, c->tensor[i].name);
}

const float *ckpt_moment(struct ckpt *c, const struct ckpt_tensor *t, int moment)
{
    return draw(c, ckpt_elements(t), (int)(t - c->tensor) + 1 + moment * CKPT_TENSORS_MOST);
}

/* --- writing ---------------------------------------------------------------------------------- */

struct writing {
    struct torch_writer w;
    struct ckpt *c;
    int storage[CKPT_TENSORS_MOST];
    int moment[CKPT_TENSORS_MOST][CKPT_MOMENTS];
};

static bool is_whole(const struct ckpt_value *v)
{
    return !v->bytes;
}

static void put_raw(struct writing *x, struct ckpt_value v)
{
    str_append_bytes(&x->w.pickle, v.bytes, v.n);
    x->w.open[x->w.depth].values++;
}

/* Writes the key, unless it is left out, and the value if v has one. True: the caller must write
 * the value. */
static bool begin_part(struct writing *x, const char *key, struct ckpt_value v)
{
    if (is_whole(&v) || v.n) torch_put_text(&x->w, key);
    if (!is_whole(&v) && v.n) put_raw(x, v);
    return is_whole(&v);
}

/* The float as float16 or bfloat16: exact for the values of ckpt_init. */
static uint16_t narrow(float value, enum safetensors_type type)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t exponent = bits >> 23 & 255, half = (exponent - 112) << 10 | (bits >> 13 & 1023);
    if (type == SAFETENSORS_BF16) return (uint16_t)(bits >> 16);
    return (uint16_t)(bits >> 31 << 15 | (exponent ? half : 0));
}

static int put_data(struct writing *x, enum safetensors_type type, const float *data, int64_t n)
{
    uint64_t *as = ARENA_NEW(&x->c->arena, uint64_t, n);
    if (type == SAFETENSORS_F32 || (type != SAFETENSORS_F16 && type != SAFETENSORS_BF16))
        memcpy(as, data, (size_t)n * sizeof *data);
    else
        for (int64_t k = 0; k < n; k++) ((uint16_t *)as)[k] = narrow(data[k], type);
    return torch_put_storage(&x->w, type, as, n);
}

static void put_storages(struct writing *x)
{
    struct ckpt *c = x->c;
    put_data(x, SAFETENSORS_F32, (float[]){CKPT_ITER_NUM}, 1);
    put_data(x, SAFETENSORS_F32, (float[]){2.5f}, 1);
    for (int i = 0; i < c->tensors; i++) {
        const struct ckpt_tensor *t = &c->tensor[i];
        if (!is_whole(&t->raw)) continue;
        int64_t n = ckpt_elements(t);
        if (t->same_as)
            x->storage[i] = x->storage[ckpt_tensor(c, t->same_as) - c->tensor];
        else
            x->storage[i] = put_data(x, t->type, t->data, n);
    }
}

static void put_weights(struct writing *x)
{
    const struct ckpt *c = x->c;
    torch_begin(&x->w, TORCH_ORDERED_DICT);
    for (int i = 0; i < c->tensors; i++) {
        const struct ckpt_tensor *t = &c->tensor[i];
        if (begin_part(x, t->name, t->raw))
            torch_put_tensor(&x->w, x->storage[i], 0, t->rank, t->dim);
    }
    torch_end(&x->w);
}

/* The order of configure_optimizers: matrices first, then the rest. The head is skipped, because it
 * shares the token table; masks are not parameters. */
static int order(const struct ckpt *c, int ret[CKPT_TENSORS_MOST], int *ret_matrices)
{
    int n = 0;
    for (int matrices = 1; matrices >= 0; matrices--) {
        for (int i = 0; i < c->tensors; i++) {
            const struct ckpt_tensor *t = &c->tensor[i];
            bool is_parameter = !t->same_as && t->rank <= 2 && !strstr(t->name, "lm_head");
            if (is_parameter && (t->rank == 2) == matrices) ret[n++] = i;
        }
        if (matrices) *ret_matrices = n;
    }
    return n;
}

static void put_state(struct writing *x)
{
    struct ckpt *c = x->c;
    int of[CKPT_TENSORS_MOST], matrices, n = order(c, of, &matrices);
    torch_begin(&x->w, TORCH_DICT);
    for (int i = 0; i < n; i++) {
        const struct ckpt_tensor *t = &c->tensor[of[i]];
        torch_put_number(&x->w, i);
        torch_begin(&x->w, TORCH_DICT);
        if (begin_part(x, "step", c->part[CKPT_STEP])) put_raw(x, CKPT_VALUE(CKPT_SCALAR("0")));
        for (int k = 0; k < CKPT_MOMENTS; k++) {
            int storage = put_data(x, SAFETENSORS_F32, ckpt_moment(c, t, k + 1), ckpt_elements(t));
            torch_put_text(&x->w, k ? "exp_avg_sq" : "exp_avg");
            torch_put_tensor(&x->w, storage, 0, t->rank, t->dim);
        }
        torch_end(&x->w);
    }
    torch_end(&x->w);
}

static void put_groups(struct writing *x)
{
    int of[CKPT_TENSORS_MOST], matrices, n = order(x->c, of, &matrices);
    torch_begin(&x->w, TORCH_LIST);
    for (int g = 0; g < 2; g++) {
        torch_begin(&x->w, TORCH_DICT);
        torch_put_text(&x->w, "weight_decay");
        torch_put_real(&x->w, g ? 0 : 0.1);
        torch_put_text(&x->w, "params");
        torch_begin(&x->w, TORCH_LIST);
        for (int i = g ? matrices : 0; i < (g ? n : matrices); i++) torch_put_number(&x->w, i);
        torch_end(&x->w);
        torch_end(&x->w);
    }
    torch_end(&x->w);
}

static void put_optimizer(struct writing *x)
{
    torch_begin(&x->w, TORCH_DICT);
    if (begin_part(x, "state", x->c->part[CKPT_STATE])) put_state(x);
    if (begin_part(x, "param_groups", x->c->part[CKPT_GROUPS])) put_groups(x);
    torch_end(&x->w);
}

static void put_args(struct writing *x)
{
    torch_begin(&x->w, TORCH_DICT);
    for (int i = 0; i < x->c->args; i++) begin_part(x, x->c->arg[i].key, x->c->arg[i].value);
    torch_end(&x->w);
}

static void put_root(struct writing *x)
{
    const struct ckpt_value *part = x->c->part;
    torch_begin(&x->w, TORCH_DICT);
    if (begin_part(x, "model", part[CKPT_MODEL])) put_weights(x);
    if (begin_part(x, "optimizer", part[CKPT_OPTIMIZER])) put_optimizer(x);
    if (begin_part(x, "model_args", part[CKPT_ARGS])) put_args(x);
    if (begin_part(x, "iter_num", part[CKPT_ITER])) torch_put_number(&x->w, CKPT_ITER_NUM);
    if (begin_part(x, "best_val_loss", part[CKPT_BEST])) put_raw(x, CKPT_VALUE(CKPT_SCALAR("1")));
    torch_put_text(&x->w, "config");
    torch_begin(&x->w, TORCH_DICT);
    torch_end(&x->w);
    torch_end(&x->w);
}

static struct writing begin(struct ckpt *c, const char *path)
{
    struct writing x = {.c = c};
    enum status st = torch_writer_open(&x.w, path, &c->arena);
    BUG_IF(st != ST_OK, "%s", fail_message());
    put_storages(&x);
    return x;
}

static void end(struct writing *x)
{
    BUG_IF(torch_writer_commit(&x->w) != ST_OK, "%s", fail_message());
}

void ckpt_write(struct ckpt *c, const char *path)
{
    struct writing x = begin(c, path);
    if (is_whole(&c->part[CKPT_ROOT]))
        put_root(&x);
    else
        put_raw(&x, c->part[CKPT_ROOT]);
    end(&x);
}

void ckpt_write_weights(struct ckpt *c, const char *path)
{
    struct writing x = begin(c, path);
    put_weights(&x);
    end(&x);
}
