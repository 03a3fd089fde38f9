#include "exchange/torch_model.h"

#include <string.h>

enum status torch_model_open(struct exchange_model *m, const char *path, struct arena *a)
{
    struct torch_file *f = ARENA_NEW(a, struct torch_file, 1);
    m->private = f;
    TRY(torch_open(f, path, a));
    m->file[m->files++] = (struct exchange_file){path, f->zip.fd};
    return ST_OK;
}

const struct pickle_value *torch_model_root(const struct exchange_model *m)
{
    const struct torch_file *f = m->private;
    return &f->root;
}

const char *torch_model_text(const struct pickle_value *v, struct arena *a)
{
    if (v->type != PICKLE_TEXT || v->number > TORCH_NAME_MOST) return NULL;
    if (memchr(v->text, '\0', (size_t)v->number)) return NULL;
    return arena_printf(a, "%.*s", (int)v->number, v->text);
}

enum status torch_model_number(const struct exchange_model *m, const char *name,
                               const struct pickle_value *v, double *ret)
{
    const struct torch_file *f = m->private;
    struct torch_tensor t;
    float x;
    if (v && (v->type == PICKLE_NUMBER || v->type == PICKLE_REAL)) {
        *ret = v->type == PICKLE_NUMBER ? (double)v->number : v->real;
        return ST_OK;
    }
    if (!v || !torch_is_tensor(v)) return fail(ST_FORMAT, "%s: %s is not a number", m->path, name);
    TRY(torch_tensor(f, name, v, &t));
    if (t.type != SAFETENSORS_F32 || t.bytes != sizeof x)
        return fail(ST_FORMAT, "%s: %s is not a number", m->path, name);
    TRY(torch_read(f, &t, &x));
    *ret = (double)x;
    return ST_OK;
}

enum status torch_model_add(struct exchange_model *m, const char *name, enum exchange_part part,
                            bool transposed, const struct pickle_value *v, struct arena *a)
{
    struct torch_tensor t;
    if (!v || !torch_is_tensor(v))
        return fail(ST_FORMAT, "%s: %.80s is not a tensor", m->path, name);
    TRY(torch_tensor(m->private, name, v, &t));
    struct exchange_tensor x = {.name = name,
                                .part = part,
                                .type = t.type,
                                .transposed = t.rank == 2 && transposed,
                                .rank = t.rank,
                                .file = m->files - 1,
                                .from = t.from,
                                .bytes = t.bytes};
    memcpy(x.dim, t.dim, sizeof x.dim);
    exchange_add(m, x, a);
    return ST_OK;
}

enum status torch_model_verify(const struct exchange_model *m)
{
    const struct torch_file *f = m->private;
    for (int i = 0; f && i < f->zip.count; i++)
        TRY(torch_check(f, &(struct torch_tensor){.storage = &f->zip.entry[i]}));
    return ST_OK;
}
