/* nanoGPT's ckpt.pt: a zip file, or only its pickle, which is then put into one. Of its storages 0
 * has 24 values of float32, 1 has 24 of 16 bits, and 2 has the number 7. */
#include "fuzz.h"
#include "read_model.h"
#include "zip_image.h"

#include "base/json.h"
#include "base/str.h"

#include <string.h>

static const char *write_pickle(const uint8_t *data, size_t size, struct arena *a)
{
    static const float values[24] = {1, -2, 0.5f, 3}, seven = 7;
    struct zip_image m = {};
    zip_image_add(&m, "x/data.pkl", data, (int64_t)size, a);
    zip_image_add(&m, "x/data/0", values, sizeof values, a);
    zip_image_add(&m, "x/data/1", values, sizeof values / 2, a);
    zip_image_add(&m, "x/data/2", &seven, sizeof seven, a);
    zip_image_finish(&m, a);
    const char *path = arena_printf(a, "%s/x.pt", fuzz_folder());
    fuzz_file(path, m.byte, m.n);
    return path;
}

static bool open_checkpoint(const char *path, struct arena *a)
{
    struct exchange_model m;
    struct str s = {};
    if (exchange_open(&m, path, a) != ST_OK) return false;
    BUG_IF(m.format != &exchange_nanogpt, "it is %s", m.format->what);
    (void)!exchange_verify(&m);
    read_model(&m, a);
    exchange_print(&m, &s);
    str_release(&s);
    json_decref(exchange_json(&m));
    exchange_close(&m);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool begun;
    struct arena a = {0};
    const char *path = arena_printf(&a, "%s/x.pt", fuzz_folder());
    if (!begun) fuzz_disk("x.pt", "PK\3\4", 4); /* what a path is, is told by the disk */
    begun = true;
    if (size >= 2 && !memcmp(data, "PK", 2))
        fuzz_file(path, data, (int64_t)size);
    else
        path = write_pickle(data, size, &a);
    return fuzz_end(&a, open_checkpoint(path, &a));
}
