#include "base/lenient.h"

#include "base/heap.h"
#include "base/utf8.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

char *lenient_utf8(const char *text, int64_t n, struct arena *a)
{
    static const char replacement[] = "\xef\xbf\xbd";
    char *copy = arena_alloc(a, 3 * n + 1), *to = copy;
    for (int64_t i = 0; i < n;) {
        int length = 0;
        if (!text[i] || utf8_decode(text + i, n - i, &length) < 0) length = 0;
        memcpy(to, length ? text + i : replacement, (size_t)(length ? length : 3));
        to += length ? length : 3;
        i += length ? length : 1;
    }
    *to = '\0';
    return copy;
}

/* The length of a NaN or an Infinity at the start of `text`, 0 if there is none. */
static size_t non_number_length(const char *text, size_t n)
{
    static const char *const words[] = {"-infinity", "infinity", "-inf", "inf", "-nan", "nan"};
    for (int w = 0; w < COUNT_OF(words); w++) {
        size_t length = strlen(words[w]);
        if (length <= n && strncasecmp(text, words[w], length) == 0) return length;
    }
    return 0;
}

/* Writes null for every NaN and Infinity outside strings; `to` has space for 2n bytes. */
static size_t replace_non_numbers(const char *text, size_t n, char *to)
{
    bool quoted = false;
    size_t written = 0;
    for (size_t i = 0; i < n; i++) {
        size_t length = quoted ? 0 : non_number_length(text + i, n - i);
        if (length) {
            memcpy(to + written, "null", 4);
            written += 4;
            i += length - 1;
            continue;
        }
        if (text[i] == '"') quoted = !quoted;
        to[written++] = text[i];
        if (quoted && text[i] == '\\' && i + 1 < n) to[written++] = text[++i];
    }
    return written;
}

struct json_t *lenient_object(const char *text, int64_t n)
{
    json_t *object = json_loadb(text, (size_t)n, 0, NULL);
    if (!object) {
        char *copy = heap_alloc(2 * n + 1);
        object = json_loadb(copy, replace_non_numbers(text, (size_t)n, copy), 0, NULL);
        free(copy);
    }
    if (object && !json_is_object(object)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

bool lenient_is_count(double x)
{
    return x >= 0 && x <= 0x1p53 && x == floor(x);
}

double lenient_number(const struct json_t *object, const char *key)
{
    const json_t *member = json_object_get(object, key);
    return json_is_number(member) ? json_number_value(member) : NAN;
}

const char *lenient_text(const struct json_t *object, const char *key, struct arena *a)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? arena_strdup(a, text) : NULL;
}
