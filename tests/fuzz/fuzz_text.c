/* Text: UTF-8, the tokens of a text and back, the lenient readers, words that are sizes. */
#include "fuzz.h"

#include "base/lenient.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/kind.h"

#include <jansson.h>
#include <string.h>

/* Decoding and encoding give the same bytes. */
static void recode(const char *text, int64_t bytes)
{
    char again[UTF8_BYTES];
    for (int64_t at = 0; at < bytes;) {
        int n;
        int32_t code = utf8_decode(text + at, bytes - at, &n);
        if (code < 0) return;
        utf8_encode(code, again);
        BUG_IF(memcmp(again, text + at, (size_t)n) != 0, "code point %d", code);
        at += n;
    }
}

static bool tokens(const char *text, int64_t bytes, struct arena *a)
{
    struct tokenized t;
    int32_t *ids;
    int64_t n;
    if (data_characters.tokenize(text, bytes, a, &t) != ST_OK) return false;
    BUG_IF(vocabulary_encode(&t.vocabulary, text, a, &ids, &n) != ST_OK, "%s", fail_message());
    BUG_IF(n != t.count, "%lld tokens and %lld ids", (long long)t.count, (long long)n);
    const uint16_t *token = t.token;
    for (int64_t i = 0; i < n; i++) BUG_IF(ids[i] != token[i], "token %lld", (long long)i);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct fuzz_part text;
    int64_t bytes;
    /* A vocabulary is a table of all code points: too slow for every input. */
    static int turn;
    enum { EVERY = 256 };
    fuzz_parts(data, size, &text, 1, &a);
    bool valid = utf8_is(text.bytes);
    if (text.size) recode(text.bytes, text.size);
    BUG_IF(!utf8_is(lenient_utf8(text.bytes, text.size, &a)), "lenient text is not UTF-8");
    json_decref(lenient_object(text.bytes, text.size));
    str_read_bytes(text.bytes, &bytes);
    str_distance("n_layer", text.size < 256 ? text.bytes : "");
    if (text.size && turn++ % EVERY == 0) tokens(text.bytes, text.size, &a);
    return fuzz_end(&a, valid);
}
