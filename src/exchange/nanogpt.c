/* Reads nanoGPT's ckpt.pt, a dictionary with the weights by name, the state of AdamW by number,
 * model_args, iter_num and best_val_loss. Matrices are stored as in nn.Linear, (out,in). */
#include "exchange/nanogpt.h"
#include "base/file.h"
#include "exchange/exchange.h"
#include "exchange/torch_model.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

bool nanogpt_is_transposed(const char *name)
{
    static const char *const linear[] = {"attn.c_attn.weight", "attn.c_proj.weight",
                                         "mlp.c_fc.weight", "mlp.c_proj.weight"};
    int64_t n = (int64_t)strlen(name);
    for (int i = 0; i < COUNT_OF(linear); i++) {
        int64_t ending = (int64_t)strlen(linear[i]);
        if (n > ending && !strcmp(name + n - ending, linear[i])) return true;
    }
    return false;
}

int *nanogpt_order(const struct model *m, int *ret_decayed, struct arena *a)
{
    int *order = ARENA_NEW(a, int, m->parameters), n = 0;
    for (int i = 0; i < m->parameters; i++)
        if (m->parameter[i].decay) order[n++] = i;
    *ret_decayed = n;
    for (int i = 0; i < m->parameters; i++)
        if (!m->parameter[i].decay) order[n++] = i;
    return order;
}

/* The path of the checkpoint in an out_dir of nanoGPT. */
static const char *in_folder(const char *path, struct arena *a)
{
    return arena_printf(a, "%s/ckpt.pt", path);
}

/* Whether a path is a zip file or has one of PyTorch's endings, or is a folder with ckpt.pt. */
static bool is_checkpoint(const char *path, struct arena *a)
{
    static const char *const endings[] = {".pt", ".pth", ".ckpt"};
    char begin[5];
    if (file_is_dir(path)) return file_exists(in_folder(path, a));
    if (!file_peek(path, begin, sizeof begin)) return false;
    const char *ending = strrchr(path, '.');
    bool named = false;
    for (int i = 0; ending && i < COUNT_OF(endings); i++) named |= !strcmp(ending, endings[i]);
    return named || !memcmp(begin, "PK\3\4", 4);
}

/* --- the dictionary --------------------------------------------------------------------------- */

static enum status fail_missing(const struct exchange_model *m, const char *what)
{
    return fail(ST_FORMAT,
                "%s has no %s, which nanoGPT's ckpt.pt has: Strobe reads the checkpoints of its "
                "train.py",
                m->path, what);
}

/* A name without the prefixes of torch.compile, DistributedDataParallel and nanoGPT's module. */
static const char *without_prefixes(const char *name)
{
    static const char *const prefixes[] = {"_orig_mod.", "module.", "transformer."};
    for (int i = 0; i < COUNT_OF(prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        if (!strncmp(name, prefixes[i], n)) return without_prefixes(name + n);
    }
    return name;
}

/* Skips the attention masks that old versions of nanoGPT saved. */
static enum status add_weights(struct exchange_model *m, const struct pickle_value *weights,
                               struct arena *a)
{
    for (int i = 0; i < weights->dict->count; i++) {
        const struct pickle_item *item = &weights->dict->item[i];
        const char *name = torch_model_text(&item->key, a), *ending;
        if (!name)
            return fail(ST_FORMAT, "%s: the name of a tensor is not text of at most %d bytes",
                        m->path, TORCH_NAME_MOST);
        name = without_prefixes(name);
        ending = strstr(name, ".attn.bias");
        if (ending && !strcmp(ending, ".attn.bias")) continue;
        TRY(torch_model_add(m, name, EXCHANGE_WEIGHT, nanogpt_is_transposed(name), &item->value,
                            a));
    }
    return ST_OK;
}

/* --- the model -------------------------------------------------------------------------------- */

static enum status read_args(struct exchange_model *m, const struct pickle_value *args,
                             struct arena *a)
{
    static const char *const sizes[] = {"n_layer", "n_head", "n_embd", "block_size", "vocab_size"};
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        const struct pickle_value *v = pickle_find(args, sizes[i]);
        if (!v || v->type != PICKLE_NUMBER || v->number < 1)
            return fail(ST_FORMAT, "%s: %s in model_args is missing or is not a positive number",
                        m->path, sizes[i]);
        TRY(exchange_set(m, m->path, sizes[i], arena_printf(a, "%lld", (long long)v->number), a));
    }
    const struct pickle_value *bias = pickle_find(args, "bias");
    if (bias && bias->type != PICKLE_BOOL)
        return fail(ST_FORMAT, "%s: bias in model_args is not True or False", m->path);
    m->config.model.bias = !bias || bias->number;
    m->config.model.gelu = GELU_ERF; /* nn.GELU() */
    m->vocab = m->config.model.vocab_size;
    return ST_OK;
}

/* --- the optimizer ---------------------------------------------------------------------------- */

/* The values of `d` for the keys 0 to n - 1; NULL for a key without a value. */
static const struct pickle_value **by_number(const struct pickle_value *d, int n, struct arena *a)
{
    const struct pickle_value **ret = ARENA_NEW(a, const struct pickle_value *, n);
    for (int i = 0; i < d->dict->count; i++) {
        const struct pickle_item *item = &d->dict->item[i];
        int64_t key = item->key.number;
        if (item->key.type == PICKLE_NUMBER && key >= 0 && key < n) ret[key] = &item->value;
    }
    return ret;
}

/* Whether the groups are those of nanoGPT: first all matrices, then all other parameters, numbered
 * in this order. */
static bool has_groups(const struct pickle_value *groups, int decayed, int all)
{
    int number = 0;
    if (!groups || groups->type != PICKLE_LIST || groups->list->count != 2) return false;
    for (int g = 0; g < 2; g++) {
        const struct pickle_value *p = pickle_find(&groups->list->item[g], "params");
        if (!p || p->type != PICKLE_LIST) return false;
        if (p->list->count != (g ? all - decayed : decayed)) return false;
        for (int i = 0; i < p->list->count; i++) {
            const struct pickle_value *v = &p->list->item[i];
            if (v->type != PICKLE_NUMBER || v->number != number++) return false;
        }
    }
    return true;
}

static enum status add_state(struct exchange_model *m, const struct pickle_value *of, int number,
                             const char *name, struct arena *a)
{
    double step;
    if (!of || of->type != PICKLE_DICT)
        return fail(ST_FORMAT, "%s: the optimizer has no state of parameter %d, %s", m->path,
                    number, name);
    TRY(torch_model_number(m, "step of the optimizer", pickle_find(of, "step"), &step));
    bool same = (float)step == (float)m->iter; /* PyTorch counts in float32 */
    if (!same && !(step >= 1 && step < (double)m->iter && step == floor(step)))
        return fail(ST_FORMAT, "%s: the optimizer has done %g steps, but iter_num is %lld", m->path,
                    step, (long long)m->iter);
    if (!same && number == 0) /* a loss scaler may skip steps */
        m->steps = step;
    bool transposed = nanogpt_is_transposed(name);
    TRY(torch_model_add(m, name, EXCHANGE_MOMENT1, transposed, pickle_find(of, "exp_avg"), a));
    return torch_model_add(m, name, EXCHANGE_MOMENT2, transposed, pickle_find(of, "exp_avg_sq"), a);
}

static enum status add_states(struct exchange_model *m, const struct pickle_value *optimizer,
                              struct arena *a)
{
    const struct pickle_value *state = pickle_find(optimizer, "state");
    struct config_model keys = m->config.model;
    struct model model = {};
    int decayed;
    if (!state || state->type != PICKLE_DICT) return fail_missing(m, "state of an optimizer");
    if (!state->dict->count) return ST_OK;
    keys.pad_vocab = 0;
    model_init(&model, &keys, m->vocab, 0, a);
    const int *order = nanogpt_order(&model, &decayed, a);
    if (!has_groups(pickle_find(optimizer, "param_groups"), decayed, model.parameters))
        return fail(ST_UNSUPPORTED,
                    "%s: the parameters of the optimizer are not grouped as in nanoGPT (matrices, "
                    "then the rest): save the checkpoint without \"optimizer\" to use its weights",
                    m->path);
    const struct pickle_value **of = by_number(state, model.parameters, a);
    for (int i = 0; i < model.parameters; i++)
        TRY(add_state(m, of[i], i, model.parameter[order[i]].name, a));
    m->states = 2;
    return ST_OK;
}

/* --- the checkpoint --------------------------------------------------------------------------- */

static enum status read_root(struct exchange_model *m, const struct pickle_value *root,
                             struct arena *a)
{
    const struct pickle_value *weights = pickle_find(root, "model");
    const struct pickle_value *args = pickle_find(root, "model_args");
    const struct pickle_value *optimizer = pickle_find(root, "optimizer");
    const struct pickle_value *iter = pickle_find(root, "iter_num");
    const struct pickle_value *best = pickle_find(root, "best_val_loss");
    if (!weights || weights->type != PICKLE_DICT) return fail_missing(m, "dictionary \"model\"");
    if (!args) return fail_missing(m, "dictionary \"model_args\"");
    TRY(read_args(m, args, a));
    if (iter && (iter->type != PICKLE_NUMBER || iter->number < 0))
        return fail(ST_FORMAT, "%s: iter_num is not a number of iterations", m->path);
    m->iter = iter ? iter->number : 0;
    if (best) TRY(torch_model_number(m, "best_val_loss", best, &m->best_val_loss));
    TRY(add_weights(m, weights, a));
    enum status st = model_check(&m->config);
    if (st != ST_OK) return fail_in(ST_FORMAT, "%s", m->path);
    if (!optimizer || optimizer->type == PICKLE_NONE) return ST_OK;
    return add_states(m, optimizer, a);
}

static enum status open_checkpoint(struct exchange_model *m, struct arena *a)
{
    if (file_is_dir(m->path)) m->path = in_folder(m->path, a);
    m->file = ARENA_NEW(a, struct exchange_file, 1);
    TRY(torch_model_open(m, m->path, a));
    TRY(read_root(m, torch_model_root(m), a));
    TRY(exchange_sort(m));
    bool has_head = exchange_find(m, "lm_head.weight", EXCHANGE_WEIGHT);
    return has_head ? exchange_drop_head(m, false) : ST_OK;
}

const struct exchange_format exchange_nanogpt = {
    .name = "nanogpt",
    .ending = "/ckpt.pt",
    .states = true,
    .what = "nanoGPT's ckpt.pt",
    .is = is_checkpoint,
    .open = open_checkpoint,
    .verify = torch_model_verify,
    .write = nanogpt_write,
};
