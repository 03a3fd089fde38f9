#include "exchange/exchange.h"

#include "base/file.h"
#include "base/heap.h"
#include "exchange/published.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The formats, in the order in which a path is compared with them. */
static const struct exchange_format *const formats[] = {&exchange_strobe, &exchange_huggingface,
                                                        &exchange_nanogpt};

/* --- opening ---------------------------------------------------------------------------------- */

static const struct exchange_format *format_of(const char *path, struct arena *a)
{
    for (int i = 0; i < COUNT_OF(formats); i++)
        if (formats[i]->is(path, a)) return formats[i];
    return NULL;
}

bool exchange_is_path(const char *word, struct arena *a)
{
    return format_of(word, a);
}

bool exchange_is(const char *word, struct arena *a)
{
    return exchange_is_path(word, a) || published_find(word);
}

void exchange_add(struct exchange_model *m, struct exchange_tensor t, struct arena *a)
{
    ARENA_GROW(a, m->tensor, m->tensors, m->capacity);
    m->tensor[m->tensors++] = t;
}

struct exchange_tensor exchange_from_safetensor(const struct exchange_model *m,
                                                const struct safetensor *t)
{
    struct exchange_tensor x = {.name = t->name,
                                .type = t->type,
                                .rank = t->rank,
                                .file = m->files - 1,
                                .from = t->from,
                                .bytes = t->bytes};
    memcpy(x.dim, t->dim, sizeof x.dim);
    return x;
}

enum status exchange_set(struct exchange_model *m, const char *path, const char *key,
                         const char *to, struct arena *a)
{
    enum status st = config_set(&m->config, arena_printf(a, "--%s=%s", key, to), a);
    return st == ST_OK ? st : fail_in(ST_UNSUPPORTED, "%s", path);
}

static int compare(const void *a, const void *b)
{
    const struct exchange_tensor *x = a, *y = b;
    return x->part != y->part ? (int)x->part - (int)y->part : strcmp(x->name, y->name);
}

enum status exchange_sort(struct exchange_model *m)
{
    if (m->tensors) qsort(m->tensor, (size_t)m->tensors, sizeof *m->tensor, compare);
    for (int i = 1; i < m->tensors; i++)
        if (!compare(&m->tensor[i - 1], &m->tensor[i]))
            return fail(ST_FORMAT, "%s has tensor %.80s twice", m->path, m->tensor[i].name);
    return ST_OK;
}

const struct exchange_tensor *exchange_find(const struct exchange_model *m, const char *name,
                                            enum exchange_part part)
{
    const struct exchange_tensor key = {.name = name, .part = part};
    return m->tensors ? bsearch(&key, m->tensor, (size_t)m->tensors, sizeof key, compare) : NULL;
}

/* The shape of a tensor in the model. */
static struct safetensor shape_of(const struct exchange_tensor *t)
{
    struct safetensor s = {.rank = t->rank};
    for (int d = 0; d < t->rank; d++) s.dim[d] = t->dim[t->transposed ? t->rank - 1 - d : d];
    return s;
}

/* The bytes of a value; 0: the type is not read. */
static int64_t width_of(enum safetensors_type type)
{
    static const int64_t width[SAFETENSORS_TYPE_COUNT] = {[SAFETENSORS_F64] = 8,
                                                          [SAFETENSORS_F32] = 4,
                                                          [SAFETENSORS_F16] = 2,
                                                          [SAFETENSORS_BF16] = 2};
    return width[type];
}

static enum status check_tensor(const struct exchange_model *m, const struct parameter *p,
                                enum exchange_part part)
{
    const struct exchange_tensor *t = exchange_find(m, p->name, part);
    struct safetensor wanted = {.rank = p->type.rank}, found;
    char there[128], here[128];
    if (!t) return fail(ST_FORMAT, "%s has no tensor %s", m->path, p->name);
    for (int d = 0; d < wanted.rank; d++) wanted.dim[d] = p->type.dim[d];
    found = shape_of(t);
    bool same = found.rank == wanted.rank;
    for (int d = 0; same && d < wanted.rank; d++) same = found.dim[d] == wanted.dim[d];
    if (!same)
        return fail(ST_FORMAT, "%s: tensor %s is %s, but by the sizes of the model it is %s",
                    m->path, p->name, safetensors_shape(&found, there),
                    safetensors_shape(&wanted, here));
    if (width_of(t->type)) return ST_OK;
    return fail(ST_UNSUPPORTED, "%s: tensor %s has the type %s; F64, F32, F16 and BF16 are read",
                m->path, p->name, safetensors_type_name(t->type));
}

/* Fails because there are more tensors than parameters; the message names one of them. */
static enum status fail_more(const struct exchange_model *m, const struct model *model)
{
    for (int i = 0; i < m->tensors; i++) {
        int k = 0;
        while (k < model->parameters && strcmp(model->parameter[k].name, m->tensor[i].name)) k++;
        if (k == model->parameters)
            return fail(ST_FORMAT, "%s has a tensor %.80s, which a GPT with n_layer = %lld lacks",
                        m->path, m->tensor[i].name, (long long)model->config.n_layer);
    }
    return fail(ST_FORMAT, "%s has more tensors than a GPT", m->path);
}

/* Checks that the keys of the model and the tensors describe the same model. */
static enum status check(const struct exchange_model *m, struct arena *a)
{
    struct config_model keys = m->config.model;
    struct model own = {};
    int parts = 1 + m->states;
    enum status st = model_check(&m->config);
    if (st != ST_OK) return fail_in(st == ST_USAGE ? ST_FORMAT : st, "%s", m->path);
    keys.vocab_size = keys.pad_vocab = 0;
    model_init(&own, &keys, m->vocab, 0, a);
    for (int i = 0; i < own.parameters; i++)
        for (int part = 0; part < parts; part++) TRY(check_tensor(m, &own.parameter[i], part));
    return m->tensors == parts * own.parameters ? ST_OK : fail_more(m, &own);
}

enum status exchange_open(struct exchange_model *m, const char *word, struct arena *a)
{
    const struct published *p = published_find(word);
    *m = (struct exchange_model){.path = word, .best_val_loss = INFINITY};
    config_init(&m->config);
    m->format = format_of(word, a);
    if (!m->format && p) {
        TRY(published_get(p, &m->path, a));
        m->format = format_of(m->path, a);
    }
    if (!m->format && !file_exists(m->path))
        return fail(ST_USAGE, "there is no %s, and no published model of that name (%s)", m->path,
                    published_names(a));
    if (!m->format)
        return fail(ST_USAGE,
                    "%s is not a model: neither a run, a checkpoint, a folder of Hugging Face "
                    "(config.json and weights) nor a ckpt.pt of nanoGPT",
                    m->path);
    enum status st = m->format->open(m, a);
    if (st == ST_OK && !m->tokens) m->tokens = m->vocab;
    if (st == ST_OK) st = check(m, a);
    if (st != ST_OK) exchange_close(m);
    return st;
}

void exchange_close(struct exchange_model *m)
{
    for (int i = 0; i < m->files; i++)
        if (m->file[i].fd >= 0) close(m->file[i].fd);
    m->files = 0;
}

enum status exchange_verify(const struct exchange_model *m)
{
    return m->format->verify ? m->format->verify(m) : ST_OK;
}

enum status exchange_config(const char *word, struct config_model *ret, struct arena *a)
{
    struct exchange_model m;
    const struct published *p = published_find(word);
    if (p && !format_of(word, a)) {
        published_config(p, ret);
        return ST_OK;
    }
    TRY(exchange_open(&m, word, a));
    *ret = m.config.model;
    exchange_close(&m);
    return ST_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

static float float_of_bits(uint32_t bits)
{
    union {
        uint32_t bits;
        float value;
    } x = {bits};
    return x.value;
}

/* Converts IEEE 754 half precision, including subnormal numbers; the conversion is exact. */
static float half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31, fraction = h & 1023;
    if (!exponent) return (sign ? -0x1p-24f : 0x1p-24f) * (float)fraction;
    return float_of_bits(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13);
}

static float brain_to_float(uint16_t b)
{
    return float_of_bits((uint32_t)b << 16);
}

enum { CHUNK = 1 << 16 };

/* Converts `n` values of a type to float32; F64 is rounded to the nearest. */
static void to_floats(enum safetensors_type type, const void *from, int64_t n, float *ret)
{
    const uint16_t *narrow = from;
    const double *wide = from;
    for (int64_t i = 0; i < n; i++)
        ret[i] = type == SAFETENSORS_F64   ? (float)wide[i]
                 : type == SAFETENSORS_F16 ? half_to_float(narrow[i])
                                           : brain_to_float(narrow[i]);
}

/* Reads `count` values of a tensor from value `from` on, as float32. */
static enum status read_values(const struct exchange_model *m, const struct exchange_tensor *t,
                               int64_t from, int64_t count, float *ret)
{
    static _Thread_local double raw[CHUNK];
    const struct exchange_file *f = &m->file[t->file];
    int64_t width = width_of(t->type);
    if (t->type == SAFETENSORS_F32)
        return file_read_range(f->fd, f->path, t->from + width * from, width * count, ret);
    for (int64_t at = 0; at < count; at += CHUNK) {
        int64_t n = min_i64(CHUNK, count - at);
        TRY(file_read_range(f->fd, f->path, t->from + width * (from + at), width * n, raw));
        to_floats(t->type, raw, n, ret + at);
    }
    return ST_OK;
}

/* Reads a matrix that is stored as (columns,rows). */
static enum status read_transposed(const struct exchange_model *m, const struct exchange_tensor *t,
                                   float *ret)
{
    int64_t rows = t->dim[1], columns = t->dim[0];
    float *line = heap_alloc(rows * (int64_t)sizeof *line);
    enum status st = ST_OK;
    for (int64_t c = 0; st == ST_OK && c < columns; c++) {
        st = read_values(m, t, c * rows, rows, line);
        for (int64_t r = 0; st == ST_OK && r < rows; r++) ret[r * columns + c] = line[r];
    }
    free(line);
    return st;
}

enum status exchange_read(const struct exchange_model *m, const struct parameter *p,
                          enum exchange_part part, float *ret)
{
    const struct exchange_tensor *t = exchange_find(m, p->name, part);
    BUG_IF(!t, "%s has no tensor %s", m->path, p->name);
    if (t->transposed) return read_transposed(m, t, ret);
    int64_t row = 1, rows = min_i64(t->dim[0], p->type.dim[0]);
    for (int d = 1; d < t->rank; d++) row *= t->dim[d];
    memset(ret + rows * row, 0, (size_t)((p->type.dim[0] - rows) * row) * sizeof *ret);
    return read_values(m, t, 0, rows * row, ret);
}

static enum status same_values(const struct exchange_model *m, const struct exchange_tensor *x,
                               const struct exchange_tensor *y, bool *ret)
{
    static _Thread_local char in_x[CHUNK], in_y[CHUNK];
    *ret = x->bytes == y->bytes;
    for (int64_t at = 0; *ret && at < x->bytes; at += CHUNK) {
        int64_t n = min_i64(CHUNK, x->bytes - at);
        const struct exchange_file *f = &m->file[x->file], *g = &m->file[y->file];
        TRY(file_read_range(f->fd, f->path, x->from + at, n, in_x));
        TRY(file_read_range(g->fd, g->path, y->from + at, n, in_y));
        *ret = !memcmp(in_x, in_y, (size_t)n);
    }
    return ST_OK;
}

static bool is_alike(const struct exchange_tensor *x, const struct exchange_tensor *y)
{
    bool alike = x->type == y->type && x->rank == y->rank;
    for (int d = 0; alike && d < x->rank; d++) alike = x->dim[d] == y->dim[d];
    return alike;
}

enum status exchange_drop_head(struct exchange_model *m, bool tied)
{
    const struct exchange_tensor *head = exchange_find(m, "lm_head.weight", EXCHANGE_WEIGHT);
    const struct exchange_tensor *table = exchange_find(m, "wte.weight", EXCHANGE_WEIGHT);
    bool same = tied;
    if (!head) {
        if (tied) return ST_OK;
        return fail(ST_FORMAT, "%s: tie_word_embeddings is false, but there is no lm_head.weight",
                    m->path);
    }
    if (!tied && table && is_alike(head, table)) TRY(same_values(m, head, table, &same));
    if (!same)
        return fail(ST_UNSUPPORTED,
                    "%s has an output head of its own (lm_head.weight); the GPT of Strobe uses "
                    "the token table (wte.weight) as its head",
                    m->path);
    int i = (int)(head - m->tensor);
    memmove(&m->tensor[i], &m->tensor[i + 1], (size_t)(--m->tensors - i) * sizeof *m->tensor);
    return ST_OK;
}

/* --- writing ---------------------------------------------------------------------------------- */

static enum status read_all(const struct exchange_model *m, const struct model *model, bool states,
                            struct exchange_source *s, struct arena *a)
{
    s->values = ARENA_NEW(a, struct exchange_values, model->parameters);
    for (int i = 0; i < model->parameters; i++) {
        const struct parameter *p = &model->parameter[i];
        struct exchange_values *v = &s->values[s->count++];
        *v = (struct exchange_values){.name = p->name, .rank = p->type.rank};
        for (int d = 0; d < v->rank; d++) v->dim[d] = p->type.dim[d];
        for (int part = 0; part <= (states ? m->states : 0); part++) {
            float *data = ARENA_NEW(a, float, type_elements(&p->type));
            TRY(exchange_read(m, p, part, data));
            v->part[part] = data;
        }
    }
    return ST_OK;
}

enum status exchange_write(const struct exchange_model *m, const struct vocabulary *vocabulary,
                           const struct exchange_format *f, const char *path, struct arena *a)
{
    struct config c = m->config;
    struct model model = {};
    const struct config_model *k = &c.model;
    if (k->kind != MODEL_GPT || (k->n_kv_head && k->n_kv_head != k->n_head))
        return fail(ST_UNSUPPORTED,
                    "%s has model = %s and n_kv_head = %lld; %s is for model = gpt with a key head "
                    "for each query head",
                    m->path, model_words[k->kind], (long long)k->n_kv_head, f->what);
    if (file_exists(path))
        return fail(ST_USAGE, "%s exists already: choose another place (--out), or remove it",
                    path);
    c.model.pad_vocab = 0;
    model_init(&model, &c.model, vocabulary->size, 0, a);
    c.model.vocab_size = model.vocab;
    struct exchange_source s = {.from = m->path,
                                .config = &c,
                                .vocabulary = vocabulary,
                                .iter = m->iter,
                                .best_val_loss = m->best_val_loss};
    TRY(exchange_verify(m));
    TRY(read_all(m, &model, f->states, &s, a));
    TRY(file_make_parent(path));
    return f->write(&s, path, a);
}

const struct exchange_format *exchange_find_format(const char *name)
{
    for (int i = 0; i < COUNT_OF(formats); i++)
        if (formats[i]->name && !strcmp(formats[i]->name, name)) return formats[i];
    return NULL;
}

const char *exchange_format_names(struct arena *a)
{
    const char *names = "";
    for (int i = 0; i < COUNT_OF(formats); i++)
        if (formats[i]->name)
            names = arena_printf(a, "%s%s%s", names, *names ? ", " : "", formats[i]->name);
    return names;
}
