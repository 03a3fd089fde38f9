#include "exchange/torch_file.h"

#include "base/checked.h"
#include "exchange/torch_types.h"

#include <stdio.h>
#include <string.h>

const struct torch_type torch_types[SAFETENSORS_TYPE_COUNT] = {
    [SAFETENSORS_F32] = {"FloatStorage", 4},     [SAFETENSORS_F64] = {"DoubleStorage", 8},
    [SAFETENSORS_BF16] = {"BFloat16Storage", 2}, [SAFETENSORS_F16] = {"HalfStorage", 2},
    [SAFETENSORS_I32] = {"IntStorage", 4},       [SAFETENSORS_I64] = {"LongStorage", 8},
    [SAFETENSORS_I16] = {"ShortStorage", 2},     [SAFETENSORS_I8] = {"CharStorage", 1},
    [SAFETENSORS_U8] = {"ByteStorage", 1},       [SAFETENSORS_BOOL] = {"BoolStorage", 1},
};

static const char pickle_name[] = "/data.pkl";

/* --- opening ---------------------------------------------------------------------------------- */

/* Fails for a file that begins with a pickle: PyTorch before 1.6 wrote a sequence of pickles. */
static enum status check_not_legacy(const char *path)
{
    char begin = 0;
    int64_t bytes;
    int fd;
    TRY(file_open(path, &fd, &bytes));
    struct zip_file file = {.path = path, .fd = fd};
    enum status st = file_read_range(fd, path, 0, min_i64(bytes, 1), &begin);
    zip_close(&file);
    TRY(st);
    if (begin != '\x80') return ST_OK; /* every pickle begins with this byte */
    return fail(ST_UNSUPPORTED,
                "%s was written by PyTorch before 1.6 or in its format of then, or is a bare "
                "pickle: load it with torch.load and save it again with torch.save",
                path);
}

static enum status find_prefix(struct torch_file *f)
{
    int64_t ending = (int64_t)sizeof pickle_name - 1;
    for (int i = 0; i < f->zip.count; i++) {
        const char *name = f->zip.entry[i].name;
        int64_t n = (int64_t)strlen(name) - ending;
        if (n <= 0 || strcmp(name + n, pickle_name) != 0 || memchr(name, '/', (size_t)n)) continue;
        if (f->prefix)
            return fail(ST_FORMAT, "%s has %s%s and %.200s: torch.save writes only one",
                        f->zip.path, f->prefix, pickle_name, name);
        f->prefix = arena_printf(f->arena, "%.*s", (int)n, name);
    }
    if (f->prefix) return ST_OK;
    return fail(ST_FORMAT,
                "%s is a zip file without NAME/data.pkl: it was not written by torch.save",
                f->zip.path);
}

static const struct zip_entry *find(const struct torch_file *f, const char *name)
{
    struct arena a = {0};
    const struct zip_entry *e = zip_find(&f->zip, arena_printf(&a, "%s/%s", f->prefix, name));
    arena_release(&a);
    return e;
}

/* Checks the byte order, which PyTorch before 2.1 did not write. */
static enum status check_order(const struct torch_file *f)
{
    char order[8] = "";
    const struct zip_entry *e = find(f, "byteorder");
    if (!e) return ST_OK;
    if (e->bytes < (int64_t)sizeof order) TRY(zip_read(&f->zip, e, order));
    if (!strcmp(order, "little")) return ST_OK;
    return fail(ST_UNSUPPORTED,
                "%s: its byteorder is \"%.7s\", and only little is read: save it again on a "
                "little-endian machine",
                f->zip.path, order);
}

static enum status read_pickle(struct torch_file *f)
{
    if (find(f, "constants.pkl"))
        return fail(ST_UNSUPPORTED,
                    "%s is a program of TorchScript; save model.state_dict() with torch.save "
                    "instead",
                    f->zip.path);
    const struct zip_entry *e = find(f, "data.pkl");
    const char *path = arena_printf(f->arena, "%s: data.pkl", f->zip.path);
    if (e->bytes > PICKLE_BYTES_MOST)
        return fail(ST_UNSUPPORTED, "%s has %lld bytes, more than the %d that are read", path,
                    (long long)e->bytes, PICKLE_BYTES_MOST);
    char *data = arena_alloc(f->arena, e->bytes + 1);
    TRY(zip_read(&f->zip, e, data));
    return pickle_read(PICKLE_TORCH, path, data, e->bytes, f->arena, &f->root);
}

static enum status read_file(struct torch_file *f)
{
    f->is_checked = ARENA_NEW(f->arena, bool, f->zip.count + 1);
    TRY(find_prefix(f));
    TRY(check_order(f));
    return read_pickle(f);
}

enum status torch_open(struct torch_file *f, const char *path, struct arena *a)
{
    struct torch_file opened = {.arena = a};
    TRY(check_not_legacy(path));
    TRY(zip_open(&opened.zip, path, a));
    enum status st = read_file(&opened);
    if (st == ST_OK)
        *f = opened;
    else
        torch_close(&opened);
    return st;
}

void torch_close(struct torch_file *f)
{
    zip_close(&f->zip);
    *f = (struct torch_file){};
}

/* --- tensors ---------------------------------------------------------------------------------- */

/* The tensor that is being checked, for messages. */
struct look {
    const struct torch_file *file;
    const char *name;
};

static enum status fail_tensor(const struct look *l, const char *what)
{
    return fail(ST_FORMAT, "%s: %.80s %s", l->file->zip.path, l->name, what);
}

static bool is_call(const struct pickle_value *v, const char *function)
{
    return v->type == PICKLE_CALL && !strcmp(v->text, function);
}

bool torch_is_tensor(const struct pickle_value *v)
{
    return is_call(v, TORCH_UTILS "." TORCH_TENSOR) || is_call(v, TORCH_UTILS "." TORCH_PARAMETER);
}

static bool is_natural(const struct pickle_value *v)
{
    return v->type == PICKLE_NUMBER && v->number >= 0;
}

static bool find_type(const struct pickle_value *v, enum safetensors_type *ret)
{
    static const char module[] = "torch.";
    if (v->type != PICKLE_NAME || strncmp(v->text, module, sizeof module - 1) != 0) return false;
    for (int i = 0; i < SAFETENSORS_TYPE_COUNT; i++) {
        if (strcmp(v->text + sizeof module - 1, torch_types[i].storage) != 0) continue;
        *ret = i;
        return true;
    }
    return false;
}

/* Sets type and storage from the tuple ('storage', class, key, device, elements). */
static enum status find_storage(const struct look *l, const struct pickle_value *v,
                                struct torch_tensor *t)
{
    const struct torch_file *f = l->file;
    if (v->type != PICKLE_PERSISTENT || v->list->count != 5)
        return fail_tensor(l, "has no storage in the file");
    const struct pickle_value *item = v->list->item, *key = &item[2];
    if (item[0].type != PICKLE_TEXT || item[0].number != 7 || memcmp(item[0].text, "storage", 7) ||
        !find_type(&item[1], &t->type) || key->type != PICKLE_TEXT || key->number > 200 ||
        !is_natural(&item[4]))
        return fail_tensor(l, "has a storage of a form that torch.save does not write");
    char name[256] = "data/";
    memcpy(name + 5, key->text, (size_t)key->number);
    t->storage = find(f, name);
    if (!t->storage || memchr(key->text, 0, (size_t)key->number))
        return fail(ST_FORMAT, "%s: %.80s is in %s, which the file does not have", f->zip.path,
                    l->name, name);
    if (size_mul(item[4].number, torch_types[t->type].bytes) == t->storage->bytes) return ST_OK;
    return fail(ST_FORMAT,
                "%s: %.80s is in %s, which has %lld bytes instead of %lld elements of %d: the "
                "file is damaged",
                f->zip.path, l->name, name, (long long)t->storage->bytes, (long long)item[4].number,
                torch_types[t->type].bytes);
}

/* A tuple of numbers as text. */
static const char *tuple_text(const struct pickle_list *l, char text[256])
{
    int n = snprintf(text, 256, "(");
    for (int i = 0; i < l->count; i++)
        n += snprintf(text + n, 256 - (size_t)n, "%s%lld", i ? "," : "",
                      (long long)l->item[i].number);
    snprintf(text + n, 256 - (size_t)n, ")");
    return text;
}

/* Sets the shape and the number of elements. */
static enum status find_shape(const struct look *l, const struct pickle_value *size,
                              const struct pickle_value *stride, struct torch_tensor *t,
                              int64_t *ret_elements)
{
    if (size->type != PICKLE_LIST || stride->type != PICKLE_LIST ||
        size->list->count != stride->list->count)
        return fail_tensor(l, "has no shape with as many strides");
    if (size->list->count > SAFETENSORS_RANK_MAX)
        return fail(ST_UNSUPPORTED, "%s: %.80s has %d dimensions, more than the %d that are read",
                    l->file->zip.path, l->name, size->list->count, SAFETENSORS_RANK_MAX);
    t->rank = size->list->count;
    int64_t expected = 1, elements = 1;
    bool in_order = true;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (!is_natural(&size->list->item[i]) || !is_natural(&stride->list->item[i]))
            return fail_tensor(l, "has a shape or strides that are not numbers");
        t->dim[i] = size->list->item[i].number;
        in_order = in_order && (t->dim[i] == 1 || stride->list->item[i].number == expected);
        expected = size_mul(expected, t->dim[i]);
        elements = size_mul(elements, max_i64(t->dim[i], 1));
    }
    if (elements == SIZE_TOO_LARGE) return fail_tensor(l, "has a shape that is too large");
    *ret_elements = expected;
    char sizes[256], strides[256];
    if (in_order || !expected) return ST_OK;
    return fail(ST_UNSUPPORTED,
                "%s: %.80s of shape %s has the strides %s, so its elements are not in order: save "
                "tensor.contiguous()",
                l->file->zip.path, l->name, tuple_text(size->list, sizes),
                tuple_text(stride->list, strides));
}

enum status torch_tensor(const struct torch_file *f, const char *name, const struct pickle_value *v,
                         struct torch_tensor *ret)
{
    const struct look l = {f, name};
    struct torch_tensor t = {};
    if (is_call(v, TORCH_UTILS "." TORCH_PARAMETER) && v->list->count) v = &v->list->item[0];
    if (!is_call(v, TORCH_UTILS "." TORCH_TENSOR) || v->list->count < 4)
        return fail_tensor(&l, "is not a tensor");
    /* The arguments are: storage, offset in elements, shape, strides, and some for training. */
    const struct pickle_value *argument = v->list->item;
    int64_t elements = 0;
    TRY(find_storage(&l, &argument[0], &t));
    TRY(find_shape(&l, &argument[2], &argument[3], &t, &elements));
    if (!is_natural(&argument[1])) return fail_tensor(&l, "has an offset that is not a number");
    int width = torch_types[t.type].bytes;
    int64_t at = size_mul(argument[1].number, width);
    t.bytes = size_mul(elements, width);
    if (size_add(at, t.bytes) > t.storage->bytes)
        return fail_tensor(&l, "reaches beyond its storage: the file is damaged");
    t.from = t.storage->from + at;
    *ret = t;
    return ST_OK;
}

enum status torch_check(const struct torch_file *f, const struct torch_tensor *t)
{
    bool *is_checked = &f->is_checked[t->storage - f->zip.entry];
    if (!*is_checked) TRY(zip_check(&f->zip, t->storage));
    *is_checked = true;
    return ST_OK;
}

enum status torch_read(const struct torch_file *f, const struct torch_tensor *t, void *ret)
{
    if (t->bytes == t->storage->bytes) return zip_read(&f->zip, t->storage, ret);
    TRY(torch_check(f, t));
    return file_read_range(f->zip.fd, f->zip.path, t->from, t->bytes, ret);
}
