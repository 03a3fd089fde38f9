/* A file of the cache of compiled kernels. */
#include "fuzz.h"

#include "backend/cuda/runtime/jit.h"
#include "backend/cuda/runtime/jit_cache.h"

#include <stdlib.h>

/* What names a file is not read from it. */
const char *const jit_options[] = {NULL};

const struct cuda_nvrtc *cuda_nvrtc(const char **)
{
    return NULL;
}

const char *cuda_text_name(int)
{
    return NULL;
}

const char *cuda_text(const char *, int64_t *)
{
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    char *image;
    int64_t bytes;
    fuzz_file("k.cubin", data, (int64_t)size);
    bool valid = jit_cache_read("k.cubin", &image, &bytes);
    if (valid) {
        fuzz_touch(image, bytes);
        free(image);
    }
    return fuzz_end(&a, valid);
}
