/* vocabulary.json of a run, and a text that is encoded with it and decoded. */
#include "fuzz.h"

#include "data/vocabulary.h"

#include <string.h>

static void encode(const struct vocabulary *v, const char *text, struct arena *a)
{
    int32_t *ids;
    int64_t n, at = 0;
    if (vocabulary_encode(v, text, a, &ids, &n) != ST_OK) return;
    for (int64_t i = 0; i < n; i++) {
        const char *token = vocabulary_text(v, ids[i]);
        int64_t bytes = (int64_t)strlen(token);
        BUG_IF(!bytes || strncmp(text + at, token, (size_t)bytes) != 0, "token %lld", (long long)i);
        at += bytes;
    }
    BUG_IF(text[at], "the text has more than its tokens");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct fuzz_part part[2];
    struct vocabulary v;
    fuzz_parts(data, size, part, 2, &a);
    fuzz_disk("vocabulary.json", part[0].bytes, part[0].size);
    const char *path = arena_printf(&a, "%s/vocabulary.json", fuzz_folder());
    bool valid = vocabulary_read(&v, path, &a) == ST_OK;
    for (int32_t i = -1; valid && i <= v.size; i++)
        fuzz_touch(vocabulary_text(&v, i), (int64_t)strlen(vocabulary_text(&v, i)) + 1);
    if (valid && part[1].size) encode(&v, part[1].bytes, &a);
    return fuzz_end(&a, valid);
}
