/* Reads files without trusting them. Entries are sorted by start offset. The first entry must start
 * at 0, each further entry must start where the previous entry ends, the last entry must end at the
 * end of the file, and each entry must have the size that its shape implies. Then no tensors
 * overlap, none exceeds the file, and every byte belongs to one tensor. */
#include "data/safetensors.h"

#include "base/file.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LENGTH_BYTES = 8,
    /* Enough for 100,000 tensors; a parsed header takes up to 40 times as much memory. */
    HEADER_BYTES_MAX = 1 << 24,
    ALIGNMENT = 64, /* of the tensors in files written here */
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "tensors are mapped, so this machine must be little-endian");

static const struct {
    const char *name;
    int bytes;
} types[SAFETENSORS_TYPE_COUNT] = {
    [SAFETENSORS_F32] = {"F32", 4},   [SAFETENSORS_F64] = {"F64", 8},
    [SAFETENSORS_BF16] = {"BF16", 2}, [SAFETENSORS_F16] = {"F16", 2},
    [SAFETENSORS_I32] = {"I32", 4},   [SAFETENSORS_I64] = {"I64", 8},
    [SAFETENSORS_I16] = {"I16", 2},   [SAFETENSORS_I8] = {"I8", 1},
    [SAFETENSORS_U8] = {"U8", 1},     [SAFETENSORS_BOOL] = {"BOOL", 1},
};

const char *safetensors_type_name(enum safetensors_type type)
{
    return types[type].name;
}

const char *safetensors_shape(const struct safetensor *t, char buffer[128])
{
    int n = snprintf(buffer, 128, "(");
    for (int i = 0; i < t->rank && n < 100; i++)
        n += snprintf(buffer + n, 128 - (size_t)n, "%s%lld", i ? "," : "", (long long)t->dim[i]);
    snprintf(buffer + n, 128 - (size_t)n, ")");
    return buffer;
}

static bool count_bytes(const struct safetensor *t, int64_t *ret_bytes)
{
    int64_t bytes = types[t->type].bytes;
    for (int i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(bytes, t->dim[i], &bytes)) return false;
    *ret_bytes = bytes;
    return true;
}

/* An entry of the header, before its offsets are checked. */
struct entry {
    struct safetensor tensor;
    int64_t begin, end;
};

static bool read_integer(json_t *item, int64_t *ret)
{
    *ret = (int64_t)json_integer_value(item);
    return json_is_integer(item) && *ret >= 0;
}

static enum status read_type(struct entry *e, const char *path, json_t *fields)
{
    const char *type = json_string_value(json_object_get(fields, "dtype"));
    if (!type) return fail(ST_FORMAT, "%s: tensor %.80s has no \"dtype\"", path, e->tensor.name);
    int i = 0;
    while (i < SAFETENSORS_TYPE_COUNT && strcmp(types[i].name, type) != 0) i++;
    if (i == SAFETENSORS_TYPE_COUNT)
        return fail(ST_UNSUPPORTED, "%s: tensor %.80s has type %.20s, which is not supported", path,
                    e->tensor.name, type);
    e->tensor.type = i;
    return ST_OK;
}

static enum status read_entry(struct entry *e, const char *path, const char *name, json_t *fields,
                              struct arena *a)
{
    e->tensor.name = arena_strdup(a, name);
    TRY(read_type(e, path, fields));
    json_t *shape = json_object_get(fields, "shape");
    bool valid = json_is_array(shape) && json_array_size(shape) <= SAFETENSORS_RANK_MAX;
    e->tensor.rank = valid ? (int)json_array_size(shape) : 0;
    for (int i = 0; valid && i < e->tensor.rank; i++)
        valid = read_integer(json_array_get(shape, (size_t)i), &e->tensor.dim[i]);
    if (!valid)
        return fail(ST_FORMAT, "%s: the \"shape\" of tensor %.80s is not a list of up to %d sizes",
                    path, name, SAFETENSORS_RANK_MAX);

    json_t *offsets = json_object_get(fields, "data_offsets");
    if (json_array_size(offsets) != 2 || !read_integer(json_array_get(offsets, 0), &e->begin) ||
        !read_integer(json_array_get(offsets, 1), &e->end) || e->end < e->begin)
        return fail(ST_FORMAT, "%s: the \"data_offsets\" of tensor %.80s are not [begin, end]",
                    path, name);
    char text[128];
    if (!count_bytes(&e->tensor, &e->tensor.bytes) || e->tensor.bytes != e->end - e->begin)
        return fail(ST_FORMAT,
                    "%s: tensor %.80s of shape %s and type %s does not match its %lld bytes "
                    "of data",
                    path, name, safetensors_shape(&e->tensor, text), types[e->tensor.type].name,
                    (long long)(e->end - e->begin));
    return ST_OK;
}

/* Metadata maps strings to strings. */
static enum status check_metadata(const char *path, json_t *metadata)
{
    const char *key;
    json_t *value;
    bool valid = json_is_object(metadata);
    if (valid)
        json_object_foreach(metadata, key, value) valid = valid && json_is_string(value);
    return valid ? ST_OK
                 : fail(ST_FORMAT, "%s: \"__metadata__\" is not an object of strings", path);
}

static int by_offset(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    /* An empty tensor sorts before a tensor that starts at the same offset. */
    return x->end < y->end ? -1 : x->end > y->end;
}

static enum status check_offsets(const struct entry *e, int count, const char *path, int64_t bytes)
{
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        if (e[i].begin != at)
            return fail(ST_FORMAT,
                        "%s: tensor %.80s begins at %lld, but the previous one ends at %lld", path,
                        e[i].tensor.name, (long long)e[i].begin, (long long)at);
        at = e[i].end;
    }
    if (at != bytes)
        return fail(ST_FORMAT,
                    "%s: the tensors have %lld bytes, but the file has %lld: it is "
                    "truncated or corrupt",
                    path, (long long)at, (long long)bytes);
    return ST_OK;
}

static enum status read_entries(struct safetensors *s, json_t *root, int64_t data_at,
                                int64_t file_bytes, struct arena *a)
{
    if (!json_is_object(root))
        return fail(ST_FORMAT, "%s: the header is not a JSON object", s->path);
    struct entry *entries = ARENA_NEW(a, struct entry, (int64_t)json_object_size(root));
    int count = 0;
    const char *name;
    json_t *fields;
    json_object_foreach(root, name, fields) {
        if (strcmp(name, "__metadata__") == 0)
            TRY(check_metadata(s->path, fields));
        else
            TRY(read_entry(&entries[count++], s->path, name, fields, a));
    }
    qsort(entries, (size_t)count, sizeof *entries, by_offset);
    TRY(check_offsets(entries, count, s->path, file_bytes - data_at));
    s->count = count;
    s->tensor = ARENA_NEW(a, struct safetensor, count);
    for (int i = 0; i < count; i++) {
        s->tensor[i] = entries[i].tensor;
        s->tensor[i].from = data_at + entries[i].begin;
    }
    return ST_OK;
}

static enum status read_header(struct safetensors *s, int64_t file_bytes, struct arena *a)
{
    if (file_bytes < LENGTH_BYTES)
        return fail(ST_FORMAT, "%s is not a safetensors file: it has only %lld bytes", s->path,
                    (long long)file_bytes);
    uint64_t header;
    TRY(file_read_range(s->fd, s->path, 0, LENGTH_BYTES, &header));
    if (header > (uint64_t)file_bytes - LENGTH_BYTES)
        return fail(ST_FORMAT,
                    "%s is truncated or not a safetensors file: its header claims %llu of %lld "
                    "bytes",
                    s->path, (unsigned long long)header, (long long)file_bytes);
    if (header > HEADER_BYTES_MAX)
        return fail(ST_UNSUPPORTED, "%s: its header has %llu bytes, more than the %d that are read",
                    s->path, (unsigned long long)header, HEADER_BYTES_MAX);
    char *text = arena_alloc(a, (int64_t)header + 1);
    TRY(file_read_range(s->fd, s->path, LENGTH_BYTES, (int64_t)header, text));
    if (header == 0 || text[0] != '{')
        return fail(ST_FORMAT, "%s is not a safetensors file: its header does not begin with {",
                    s->path);
    json_error_t e;
    json_t *root = json_loadb(text, (size_t)header, JSON_REJECT_DUPLICATES, &e);
    if (!root) return fail(ST_FORMAT, "%s: the header is corrupt: %s", s->path, e.text);
    enum status st = read_entries(s, root, LENGTH_BYTES + (int64_t)header, file_bytes, a);
    json_decref(root);
    return st;
}

enum status safetensors_open(struct safetensors *s, const char *path, struct arena *a)
{
    int64_t bytes;
    struct safetensors opened = {.path = arena_strdup(a, path)};
    TRY(file_open(path, &opened.fd, &bytes));
    enum status st = read_header(&opened, bytes, a);
    if (st == ST_OK)
        *s = opened;
    else
        safetensors_close(&opened);
    return st;
}

void safetensors_close(struct safetensors *s)
{
    if (s->path) close(s->fd);
    *s = (struct safetensors){};
}

enum status safetensors_read(const struct safetensors *s, const struct safetensor *t, void *ret)
{
    return file_read_range(s->fd, s->path, t->from, t->bytes, ret);
}

const struct safetensor *safetensors_find(const struct safetensors *s, const char *name)
{
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->tensor[i].name, name) == 0) return &s->tensor[i];
    return NULL;
}

/* The header as JSON. Hugging Face's model loaders require "format". */
static char *format_header(const struct safetensor *tensors, int count)
{
    json_t *root = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        const struct safetensor *t = &tensors[i];
        int64_t bytes;
        BUG_IF(!count_bytes(t, &bytes), "tensor %s is too large", t->name);
        BUG_IF(json_object_get(root, t->name), "two tensors have the name %s", t->name);
        json_t *shape = json_array();
        for (int d = 0; d < t->rank; d++) json_array_append_new(shape, json_integer(t->dim[d]));
        json_t *fields = json_pack("{s:s, s:o, s:[I, I]}", "dtype", types[t->type].name, "shape",
                                   shape, "data_offsets", (json_int_t)at, (json_int_t)(at + bytes));
        BUG_IF(json_object_set_new(root, t->name, fields) != 0, "invalid tensor name %s", t->name);
        at += bytes;
    }
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    BUG_IF(!text, "out of host memory");
    return text;
}

struct sink {
    struct file_writer *file;
    struct hash *hash;
    int64_t bytes;
};

static void write_bytes(struct sink *s, const void *bytes, int64_t n)
{
    hash_add(s->hash, bytes, n);
    file_writer_add(s->file, bytes, n);
    s->bytes += n;
}

static void write_all(struct sink *s, const struct safetensor *tensors, int count)
{
    char *header = format_header(tensors, count);
    int64_t length = (int64_t)strlen(header);
    int64_t padding = (ALIGNMENT - (LENGTH_BYTES + length) % ALIGNMENT) % ALIGNMENT;
    static const char spaces[ALIGNMENT + 1] =
        "                                                                ";
    uint64_t header_bytes = (uint64_t)(length + padding);
    write_bytes(s, &header_bytes, LENGTH_BYTES);
    write_bytes(s, header, length);
    write_bytes(s, spaces, padding);
    free(header);
    for (int i = 0; i < count; i++) {
        int64_t bytes;
        if (count_bytes(&tensors[i], &bytes)) write_bytes(s, tensors[i].data, bytes);
    }
}

enum status safetensors_write(const char *path, const struct safetensor *tensors, int count,
                              struct safetensors_facts *ret)
{
    struct file_writer w;
    TRY(file_writer_open(&w, path));
    struct sink s = {.file = &w, .hash = hash_open()};
    write_all(&s, tensors, count);
    struct safetensors_facts facts = {.bytes = s.bytes};
    hash_close(s.hash, facts.sha256);
    TRY(file_writer_commit(&w));
    if (ret) *ret = facts;
    return ST_OK;
}
