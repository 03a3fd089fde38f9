/* A file of tensors: its length, header and data. Every byte of every tensor is read. */
#include "fuzz.h"

#include "data/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct safetensors s;
    char shape[128];
    fuzz_file("x.safetensors", data, (int64_t)size);
    bool valid = safetensors_open(&s, "x.safetensors", &a) == ST_OK;
    for (int i = 0; valid && i < s.count; i++) {
        const struct safetensor *t = safetensors_find(&s, s.tensor[i].name);
        void *bytes = malloc((size_t)t->bytes + 1);
        if (safetensors_read(&s, t, bytes) == ST_OK) fuzz_touch(bytes, t->bytes);
        free(bytes);
        safetensors_shape(t, shape);
    }
    if (valid) safetensors_close(&s);
    return fuzz_end(&a, valid);
}
