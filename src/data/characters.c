/* Data sets of characters: a token is a Unicode code point; the vocabulary is sorted. */
#include "base/utf8.h"
#include "data/kind.h"
#include "data/token_split.h"

#include <string.h>

/* id: the token id of each code point, or -1 if the text does not contain it. */
struct numbering {
    int32_t *id;
    int64_t characters;
    struct vocabulary vocabulary;
};

static enum status number_characters(struct numbering *n, const char *text, int64_t bytes,
                                     struct arena *a)
{
    n->id = ARENA_NEW(a, int32_t, UTF8_LIMIT);
    for (int64_t at = 0; at < bytes; n->characters++) {
        int length;
        int32_t code = utf8_decode(text + at, bytes - at, &length);
        if (code < 0)
            return fail(ST_FORMAT,
                        "the text is not valid UTF-8 at byte %lld: convert it with iconv first",
                        (long long)at);
        if (code == 0)
            return fail(ST_FORMAT, "byte %lld is zero: this is not a text file", (long long)at);
        n->id[code] = 1;
        at += length;
    }
    int size = 0;
    for (int32_t code = 0; code < UTF8_LIMIT; code++) n->id[code] = n->id[code] ? size++ : -1;
    if (size > VOCABULARY_MAX)
        return fail(ST_UNSUPPORTED,
                    "the text has %d different characters, but a vocabulary has at most %d", size,
                    VOCABULARY_MAX);
    const char **texts = ARENA_NEW(a, const char *, size);
    for (int32_t code = 0; code < UTF8_LIMIT; code++) {
        if (n->id[code] < 0) continue;
        char character[UTF8_BYTES];
        utf8_encode(code, character);
        texts[n->id[code]] = arena_strdup(a, character);
    }
    n->vocabulary = (struct vocabulary){.kind = &data_characters, .size = size, .text = texts};
    return ST_OK;
}

static enum status tokenize(const char *text, int64_t bytes, struct arena *a, struct tokenized *ret)
{
    struct numbering n = {};
    TRY(number_characters(&n, text, bytes, a));
    int size = token_bytes(n.vocabulary.size);
    void *tokens = arena_alloc(a, n.characters * size);
    uint16_t *narrow = tokens;
    uint32_t *wide = tokens;
    for (int64_t at = 0, i = 0; at < bytes; i++) {
        int length;
        int32_t id = n.id[utf8_decode(text + at, bytes - at, &length)];
        if (size == sizeof *narrow)
            narrow[i] = (uint16_t)id;
        else
            wide[i] = (uint32_t)id;
        at += length;
    }
    *ret = (struct tokenized){n.vocabulary, tokens, n.characters};
    return ST_OK;
}

/* The id of a character, by binary search (UTF-8 sorts like code points); -1: not found. */
static int32_t find(const struct vocabulary *v, const char *character)
{
    int32_t low = 0, high = v->size - 1;
    while (low <= high) {
        int32_t middle = low + (high - low) / 2;
        int order = strcmp(character, v->text[middle]);
        if (order == 0) return middle;
        if (order < 0)
            high = middle - 1;
        else
            low = middle + 1;
    }
    return -1;
}

static enum status encode(const struct vocabulary *v, const char *text, struct arena *a,
                          int32_t **ret_ids, int64_t *ret_count)
{
    int64_t bytes = (int64_t)strlen(text), count = 0;
    int32_t *ids = ARENA_NEW(a, int32_t, bytes);
    for (int64_t at = 0; at < bytes;) {
        int n;
        int32_t code = utf8_decode(text + at, bytes - at, &n);
        if (code < 0)
            return fail(ST_FORMAT, "the text is not valid UTF-8 at byte %lld", (long long)at);
        char character[UTF8_BYTES];
        utf8_encode(code, character);
        ids[count] = find(v, character);
        if (ids[count] < 0)
            return fail(
                ST_USAGE,
                "the character \"%s\" (U+%04X) at byte %lld is not among the %d characters of the "
                "vocabulary: remove it",
                code < ' ' ? "" : character, (unsigned)code, (long long)at, v->size);
        count++;
        at += n;
    }
    *ret_ids = ids;
    *ret_count = count;
    return ST_OK;
}

static int invalid_entry(const struct vocabulary *v)
{
    int32_t previous = -1;
    for (int i = 0; i < v->size; i++) {
        int64_t bytes = (int64_t)strlen(v->text[i]);
        int n = 0;
        int32_t code = bytes ? utf8_decode(v->text[i], bytes, &n) : -1;
        if (code < 0 || n != bytes || code <= previous) return i;
        previous = code;
    }
    return -1;
}

const struct data_kind data_characters = {
    .name = "characters",
    .tokenize = tokenize,
    .encode = encode,
    .invalid_entry = invalid_entry,
    .invalid = "is not a single character, or is out of order",
};
