/* A file of torch.save: a zip file, or only its pickle, which is then put into one. Every tensor
 * that it names is read. */
#include "fuzz.h"
#include "zip_image.h"

#include "exchange/torch_file.h"

#include <stdlib.h>
#include <string.h>

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
        struct zip_image m = {};
        zip_image_add(&m, "x/data.pkl", data, (int64_t)size, &a);
        zip_image_add(&m, "x/data/0", storage, 24, &a);
        zip_image_add(&m, "x/data/1", storage, 8, &a);
        zip_image_finish(&m, &a);
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
