/* A file of torch.save: a zip file, or only its pickle, which is then put into one. Every tensor
 * that it names is read. */
#include "fuzz.h"

#include "exchange/crc32.h"
#include "exchange/torch_file.h"
#include "exchange/zip_format.h"

#include <stdlib.h>
#include <string.h>

/* A zip file in memory. */
struct image {
    uint8_t *byte;
    int64_t n;
    uint8_t directory[256];
    int directory_bytes, count;
};

static void put(uint8_t **at, int bytes, int64_t number)
{
    for (int i = 0; i < bytes; i++) *(*at)++ = (uint8_t)((uint64_t)number >> 8 * i);
}

/* What both headers of an entry have after their versions. */
static void put_common(uint8_t **at, const char *name, const void *data, int64_t n)
{
    put(at, 8, 0);
    put(at, 4, crc32_add(0, data, n));
    put(at, 4, n);
    put(at, 4, n);
    put(at, 4, (int64_t)strlen(name));
}

static void add(struct image *m, const char *name, const void *data, int64_t n)
{
    uint8_t *at = m->byte + m->n, *d = m->directory + m->directory_bytes;
    size_t length = strlen(name);
    put(&d, 4, ZIP_DIRECTORY);
    put(&d, 4, 0);
    put_common(&d, name, data, n);
    put(&d, 6, 0);
    put(&d, 4, 0);
    put(&d, 4, m->n);
    memcpy(d, name, length);
    put(&at, 4, ZIP_LOCAL);
    put(&at, 2, 0);
    put_common(&at, name, data, n);
    memcpy(at, name, length);
    if (n) memcpy(at + length, data, (size_t)n);
    m->n = at + length + n - m->byte;
    m->directory_bytes = (int)(d + length - m->directory);
    m->count++;
}

static void finish(struct image *m)
{
    uint8_t *at = m->byte + m->n;
    memcpy(at, m->directory, (size_t)m->directory_bytes);
    at += m->directory_bytes;
    put(&at, 4, ZIP_END);
    put(&at, 4, 0);
    put(&at, 2, m->count);
    put(&at, 2, m->count);
    put(&at, 4, m->directory_bytes);
    put(&at, 4, m->n);
    put(&at, 2, 0);
    m->n = at - m->byte;
}

static void touch_tensor(const struct torch_file *f, const struct pickle_value *v)
{
    struct torch_tensor t;
    if (torch_tensor(f, "x", v, &t) != ST_OK) return;
    BUG_IF(t.from < 0 || t.bytes < 0 || t.bytes > f->zip.bytes - t.from, "a tensor of no bytes");
    void *bytes = malloc((size_t)t.bytes + 1);
    if (torch_read(f, &t, bytes) == ST_OK) fuzz_touch(bytes, t.bytes);
    free(bytes);
}

/* A value and those in it, which may contain it; `left`: so many more are looked at. */
static void touch(const struct torch_file *f, const struct pickle_value *v, int depth, int *left)
{
    if (!depth || --*left < 0) return;
    touch_tensor(f, v);
    if (v->type == PICKLE_TEXT) fuzz_touch(v->text, v->number);
    if (v->type == PICKLE_NAME || v->type == PICKLE_CALL) fuzz_touch(v->text, (int)strlen(v->text));
    for (int i = 0; v->type == PICKLE_DICT && i<v->dict->count && * left> 0; i++) {
        touch(f, &v->dict->item[i].key, depth - 1, left);
        touch(f, &v->dict->item[i].value, depth - 1, left);
    }
    bool has_list =
        v->type == PICKLE_LIST || v->type == PICKLE_CALL || v->type == PICKLE_PERSISTENT;
    for (int i = 0; has_list && i<v->list->count && * left> 0; i++)
        touch(f, &v->list->item[i], depth - 1, left);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t storage[24] = {1, 2, 3};
    struct arena a = {0};
    struct torch_file f;
    int left = 1000;
    if (size >= 2 && !memcmp(data, "PK", 2)) {
        fuzz_file("x.pt", data, (int64_t)size);
    } else {
        struct image m = {.byte = arena_alloc(&a, (int64_t)size + 1024)};
        add(&m, "x/data.pkl", data, (int64_t)size);
        add(&m, "x/data/0", storage, 24);
        add(&m, "x/data/1", storage, 8);
        finish(&m);
        fuzz_file("x.pt", m.byte, m.n);
    }
    bool valid = torch_open(&f, "x.pt", &a) == ST_OK;
    for (int i = 0; valid && i < f.zip.count; i++) {
        const struct zip_entry *e = &f.zip.entry[i];
        BUG_IF(zip_find(&f.zip, e->name) != e, "an entry is not found");
        (void)!zip_check(&f.zip, e);
    }
    if (valid) touch(&f, &f.root, 8, &left);
    if (valid) torch_close(&f);
    return fuzz_end(&a, valid);
}
