/* A text, and a vocabulary: tokenizer.json, a file of ranks, or vocab.json and merges.txt. */
#include "fuzz.h"

#include "base/json.h"
#include "text/bpe_long.h"
#include "text/encode.h"
#include "text/encoder.h"
#include "text/split.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = 1 << 12, CACHE_BITS = 3 };

/* Its ids. The sanitizer sees a read beyond the bytes that may be read. */
static void encode(const struct tokenizer *t, struct bpe_long *w, bool special, const char *text,
                   int64_t bytes, struct str *ids)
{
    struct encode e;
    char *padded = malloc((size_t)bytes + ENCODER_PADDING);
    if (bytes) memcpy(padded, text, (size_t)bytes);
    memset(padded + bytes, 'e', ENCODER_PADDING);
    encode_open(&e, t, w, special, CACHE_BITS);
    encode_append(&e, padded, bytes, ids);
    encode_close(&e);
    free(padded);
}

/* The ids are those of the text: they give it back. */
static void decode(const struct tokenizer *t, const struct str *ids, const char *text,
                   int64_t bytes)
{
    int64_t at = 0, n = ids->len / bpe_id_bytes(&t->bpe);
    for (int64_t i = 0; i < n; i++) {
        struct token_text token = tokenizer_text(t, encode_id(t, ids, i));
        BUG_IF(!token.length || token.length > bytes - at ||
                   memcmp(token.bytes, text + at, (size_t)token.length) != 0,
               "token %lld is other text", (long long)i);
        at += token.length;
    }
    BUG_IF(at != bytes, "the tokens have %lld bytes", (long long)at);
}

/* The two parts of a text that is cut where it may be have its ids. */
static void cut(const struct tokenizer *t, struct bpe_long *w, bool special, const char *text,
                int64_t bytes, const struct str *expected)
{
    struct str ids = {0};
    int64_t at = encode_cut(t, special, text, bytes);
    BUG_IF(at < 0 || at > bytes, "a cut at %lld", (long long)at);
    encode(t, w, special, text, at, &ids);
    encode(t, w, special, text + at, bytes - at, &ids);
    BUG_IF(ids.len != expected->len ||
               (ids.len && memcmp(ids.data, expected->data, (size_t)ids.len) != 0),
           "other ids if the text is cut at %lld", (long long)at);
    str_release(&ids);
}

/* One join after the other, as the definition says. */
static int64_t join(const struct bpe *b, const char *text, int64_t n, uint32_t *rank)
{
    for (int64_t i = 0; i < n; i++) rank[i] = (uint8_t)text[i];
    for (;;) {
        int64_t at = 0;
        uint32_t best = BPE_NONE;
        for (int64_t i = 0; i + 1 < n; i++) {
            uint32_t joined = bpe_joined(b, rank[i], rank[i + 1]);
            if (joined >= best) continue;
            best = joined;
            at = i;
        }
        if (best == BPE_NONE) return n;
        rank[at] = best;
        n--;
        memmove(rank + at + 1, rank + at + 2, (size_t)(n - at - 1) * sizeof *rank);
    }
}

static void compare(const struct tokenizer *t, const char *text, int64_t bytes,
                    const struct str *ids)
{
    static uint64_t begins[TEXT_MOST / SPLIT_BLOCK];
    static uint32_t rank[TEXT_MOST];
    struct splitter s;
    int64_t k = 0;
    split_begin(&s, text, bytes);
    split_next(&s, COUNT_OF(begins), begins);
    for (int64_t at = 0, end; at < bytes; at = end) {
        for (end = at + 1; end < bytes; end++)
            if (begins[end / SPLIT_BLOCK] >> end % SPLIT_BLOCK & 1) break;
        int64_t n = join(&t->bpe, text + at, end - at, rank);
        for (int64_t i = 0; i < n; i++)
            BUG_IF(encode_id(t, ids, k + i) != t->bpe.id[rank[i]], "id %lld is wrong",
                   (long long)(k + i));
        k += n;
    }
}

/* A data set keeps the vocabulary this way. */
static void rewrite(const struct tokenizer *t, const char *text, int64_t bytes,
                    const struct str *expected, struct arena *a)
{
    struct tokenizer again;
    json_t *root = tokenizer_json(t);
    BUG_IF(tokenizer_read(&again, root, "what was written", a) != ST_OK, "%s", fail_message());
    json_decref(root);
    BUG_IF(again.bpe.ids != t->bpe.ids, "%d ids become %d", t->bpe.ids, again.bpe.ids);
    struct bpe_long *w = bpe_long_open(&again.bpe);
    struct str ids = {0};
    encode(&again, w, true, text, bytes, &ids);
    BUG_IF(ids.len != expected->len ||
               (ids.len && memcmp(ids.data, expected->data, (size_t)ids.len) != 0),
           "other ids by the vocabulary that was written");
    str_release(&ids);
    bpe_long_close(w);
}

static void use(const struct tokenizer *t, const char *text, int64_t bytes, struct arena *a)
{
    struct bpe_long *w = bpe_long_open(&t->bpe);
    for (int special = 0; special < 2; special++) {
        struct str ids = {0};
        encode(t, w, special, text, bytes, &ids);
        decode(t, &ids, text, bytes);
        cut(t, w, special, text, bytes, &ids);
        if (special)
            rewrite(t, text, bytes, &ids, a);
        else
            compare(t, text, bytes, &ids);
        str_release(&ids);
    }
    bpe_long_close(w);
}

/* The files of one form, in memory; *ret is what is opened. */
static void place(const struct fuzz_part *part, int parts, const char **ret, struct arena *a)
{
    *ret = fuzz_folder();
    if (parts > 2) {
        fuzz_file(arena_printf(a, "%s/vocab.json", *ret), part[1].bytes, part[1].size);
        fuzz_file(arena_printf(a, "%s/merges.txt", *ret), part[2].bytes, part[2].size);
    } else if (part[1].size && *part[1].bytes == '{') {
        fuzz_file(arena_printf(a, "%s/tokenizer.json", *ret), part[1].bytes, part[1].size);
    } else {
        *ret = "/dev/null"; /* a name that exists, and is no folder */
        fuzz_file(*ret, part[1].bytes, part[1].size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct fuzz_part part[3];
    struct tokenizer t;
    const char *path;
    place(part, fuzz_parts(data, size, part, 3, &a), &path, &a);
    bool valid = tokenizer_open(&t, path, &a) == ST_OK;
    if (valid) use(&t, part[0].bytes, min_i64(part[0].size, TEXT_MOST), &a);
    return fuzz_end(&a, valid);
}
