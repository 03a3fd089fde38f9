#include "base/file.h"
#include "base/log.h"
#include "data/kind.h"
#include "data/nanogpt_meta.h"
#include "exchange/nanogpt.h"
#include "exchange/torch_write.h"

#include <math.h>
#include <string.h>

struct writing {
    struct torch_writer w;
    const struct exchange_source *s;
    const int *order; /* from nanogpt_order; the first `decayed` parameters have weight decay */
    int decayed;
    int (*storage)[EXCHANGE_PARTS]; /* number of the storage, by parameter and part */
    struct arena *a;
};

/* --- tensors ---------------------------------------------------------------------------------- */

static int64_t count(const struct exchange_values *v)
{
    int64_t n = 1;
    for (int d = 0; d < v->rank; d++) n *= v->dim[d];
    return n;
}

/* Converts (in,out) to (out,in). */
static void transpose(const struct exchange_values *v, const float *from, float *to)
{
    int64_t rows = v->dim[0], columns = v->dim[1];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) to[c * rows + r] = from[r * columns + c];
}

/* Writes the data of all tensors. */
static void put_storages(struct writing *x)
{
    const struct exchange_source *s = x->s;
    int64_t most = 0;
    for (int i = 0; i < s->count; i++) most = max_i64(most, count(&s->values[i]));
    float *turned = ARENA_NEW(x->a, float, most);
    for (int i = 0; i < s->count; i++)
        for (int part = 0; part < EXCHANGE_PARTS; part++) {
            const struct exchange_values *v = &s->values[i];
            const float *data = v->part[part];
            if (!data || (part && !v->part[EXCHANGE_MOMENT2])) continue;
            if (nanogpt_is_transposed(v->name)) {
                transpose(v, data, turned);
                data = turned;
            }
            x->storage[i][part] = torch_put_storage(&x->w, SAFETENSORS_F32, data, count(v));
        }
}

static void put_tensor(struct writing *x, int i, enum exchange_part part)
{
    const struct exchange_values *v = &x->s->values[i];
    int64_t dim[2] = {v->dim[0], v->dim[1]};
    if (nanogpt_is_transposed(v->name)) {
        dim[0] = v->dim[1];
        dim[1] = v->dim[0];
    }
    torch_put_tensor(&x->w, x->storage[i][part], 0, v->rank, dim);
}

/* Writes the weights. The token table has two names in the file: its own name and the name of the
 * output head. */
static void put_weights(struct writing *x)
{
    torch_begin(&x->w, TORCH_ORDERED_DICT);
    for (int i = 0; i < x->s->count; i++) {
        torch_put_text(&x->w, arena_printf(x->a, "transformer.%s", x->s->values[i].name));
        put_tensor(x, i, EXCHANGE_WEIGHT);
    }
    torch_put_text(&x->w, "lm_head.weight");
    put_tensor(x, 0, EXCHANGE_WEIGHT);
    torch_end(&x->w);
}

/* --- entries of dictionaries ------------------------------------------------------------------ */

static void put_key_number(struct writing *x, const char *key, int64_t number)
{
    torch_put_text(&x->w, key);
    torch_put_number(&x->w, number);
}

static void put_key_real(struct writing *x, const char *key, double number)
{
    torch_put_text(&x->w, key);
    torch_put_real(&x->w, number);
}

static void put_key_bool(struct writing *x, const char *key, bool is)
{
    torch_put_text(&x->w, key);
    torch_put_bool(&x->w, is);
}

static void put_key_none(struct writing *x, const char *key)
{
    torch_put_text(&x->w, key);
    torch_put_none(&x->w);
}

/* --- the optimizer ---------------------------------------------------------------------------- */

/* Each parameter needs its own storage for the number of steps, since PyTorch increments it in
 * place. */
static void put_state(struct writing *x)
{
    bool has_moments = x->s->values[0].part[EXCHANGE_MOMENT2];
    float steps = (float)x->s->iter;
    torch_begin(&x->w, TORCH_DICT);
    for (int i = 0; has_moments && i < x->s->count; i++) {
        int parameter = x->order[i], step = torch_put_storage(&x->w, SAFETENSORS_F32, &steps, 1);
        torch_put_number(&x->w, i);
        torch_begin(&x->w, TORCH_DICT);
        torch_put_text(&x->w, "step");
        torch_put_tensor(&x->w, step, 0, 0, NULL);
        torch_put_text(&x->w, "exp_avg");
        put_tensor(x, parameter, EXCHANGE_MOMENT1);
        torch_put_text(&x->w, "exp_avg_sq");
        put_tensor(x, parameter, EXCHANGE_MOMENT2);
        torch_end(&x->w);
    }
    torch_end(&x->w);
}

/* Writes all keys of a group of PyTorch's AdamW, because a loaded group replaces the
 * optimizer's. */
static void put_group(struct writing *x, int first, int last, double decay)
{
    static const char *const off[] = {"amsgrad", "maximize", "capturable", "differentiable"};
    const struct config_train *c = &x->s->config->train;
    torch_begin(&x->w, TORCH_DICT);
    put_key_real(x, "lr", c->learning_rate);
    torch_put_text(&x->w, "betas");
    torch_begin(&x->w, TORCH_TUPLE);
    torch_put_real(&x->w, c->beta1);
    torch_put_real(&x->w, c->beta2);
    torch_end(&x->w);
    put_key_real(x, "eps", 1e-8);
    put_key_real(x, "weight_decay", decay);
    for (int i = 0; i < COUNT_OF(off); i++) put_key_bool(x, off[i], false);
    put_key_none(x, "foreach");
    put_key_none(x, "fused");
    put_key_bool(x, "decoupled_weight_decay", true);
    torch_put_text(&x->w, "params");
    torch_begin(&x->w, TORCH_LIST);
    for (int i = first; i < last; i++) torch_put_number(&x->w, i);
    torch_end(&x->w);
    torch_end(&x->w);
}

static void put_optimizer(struct writing *x)
{
    torch_begin(&x->w, TORCH_DICT);
    torch_put_text(&x->w, "state");
    put_state(x);
    torch_put_text(&x->w, "param_groups");
    torch_begin(&x->w, TORCH_LIST);
    put_group(x, 0, x->decayed, x->s->config->train.weight_decay);
    put_group(x, x->decayed, x->s->count, 0);
    torch_end(&x->w);
    torch_end(&x->w);
}

/* --- the checkpoint --------------------------------------------------------------------------- */

static void put_args(struct writing *x)
{
    const struct config_model *m = &x->s->config->model;
    torch_begin(&x->w, TORCH_DICT);
    put_key_number(x, "n_layer", m->n_layer);
    put_key_number(x, "n_head", m->n_head);
    put_key_number(x, "n_embd", m->n_embd);
    put_key_number(x, "block_size", m->block_size);
    put_key_bool(x, "bias", m->bias);
    put_key_number(x, "vocab_size", m->vocab_size);
    put_key_real(x, "dropout", m->dropout);
    torch_end(&x->w);
}

/* The configuration, for nanoGPT's sample.py and for people who read a checkpoint. */
static void put_config(struct writing *x)
{
    const struct config *c = x->s->config;
    torch_begin(&x->w, TORCH_DICT);
    torch_put_text(&x->w, "dataset");
    torch_put_text(&x->w, c->data.dataset);
    put_key_number(x, "batch_size", c->data.batch_size);
    put_key_number(x, "gradient_accumulation_steps", c->train.gradient_accumulation_steps);
    put_key_real(x, "learning_rate", c->train.learning_rate);
    put_key_real(x, "min_lr", c->train.min_lr);
    put_key_bool(x, "decay_lr", c->train.decay_lr);
    put_key_number(x, "warmup_iters", c->train.warmup_iters);
    put_key_number(x, "lr_decay_iters", c->train.lr_decay_iters);
    put_key_real(x, "weight_decay", c->train.weight_decay);
    put_key_real(x, "beta1", c->train.beta1);
    put_key_real(x, "beta2", c->train.beta2);
    put_key_real(x, "grad_clip", c->train.grad_clip);
    put_key_number(x, "max_iters", c->train.max_iters);
    torch_end(&x->w);
}

static void put_all(struct writing *x)
{
    double best = x->s->best_val_loss;
    put_storages(x);
    torch_begin(&x->w, TORCH_DICT);
    torch_put_text(&x->w, "model");
    put_weights(x);
    torch_put_text(&x->w, "optimizer");
    put_optimizer(x);
    torch_put_text(&x->w, "model_args");
    put_args(x);
    put_key_number(x, "iter_num", x->s->iter);
    put_key_real(x, "best_val_loss", isfinite(best) ? best : 1e9); /* nanoGPT's initial value */
    torch_put_text(&x->w, "config");
    put_config(x);
    torch_end(&x->w);
}

/* Writes the characters beside ckpt.pt; a file that is there already is kept. */
static enum status write_characters(const struct exchange_source *s, const char *path,
                                    struct arena *a)
{
    const char *slash = strrchr(path, '/');
    const char *meta = arena_printf(a, "%.*smeta.pkl", slash ? (int)(slash + 1 - path) : 0, path);
    if (s->vocabulary->kind != &data_characters) return ST_OK;
    if (file_exists(meta)) {
        log_info("%s exists already and is kept", meta);
        return ST_OK;
    }
    TRY(nanogpt_meta_write(s->vocabulary, meta));
    log_info("its characters: %s, which nanoGPT's sample.py looks for in data/%s", meta,
             s->config->data.dataset);
    return ST_OK;
}

enum status nanogpt_write(const struct exchange_source *s, const char *path, struct arena *a)
{
    struct writing x = {.s = s, .a = a};
    struct config_model keys = s->config->model;
    struct model model = {};
    model_init(&model, &keys, keys.vocab_size, 0, a);
    x.order = nanogpt_order(&model, &x.decayed, a);
    x.storage = arena_alloc(a, (int64_t)sizeof *x.storage * s->count);
    TRY(torch_writer_open(&x.w, path, a));
    put_all(&x);
    TRY(torch_writer_commit(&x.w));
    TRY(write_characters(s, path, a));
    if (s->config->model.gelu == GELU_TANH)
        log_warning("nanoGPT computes GELU exactly, but %s was trained with tanh's approximation: "
                    "its losses will differ in the fourth digit",
                    s->from);
    return ST_OK;
}
