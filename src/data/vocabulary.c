#include "data/vocabulary.h"

#include "base/utf8.h"
#include "data/meta.h"

#include <string.h>

/* Binary search: the vocabulary is sorted by code point, and byte order of UTF-8 equals code point
 * order. -1: not found. */
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

enum status vocabulary_encode(const struct vocabulary *v, const char *text, struct arena *a,
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

const char *vocabulary_text(const struct vocabulary *v, int32_t id)
{
    return id >= 0 && id < v->size ? v->text[id] : "";
}

enum status vocabulary_read(struct vocabulary *v, const char *path, struct arena *a)
{
    struct meta m;
    TRY(meta_read(&m, path, a));
    *v = m.vocabulary;
    return ST_OK;
}
