#include "base/utf8.h"

#include "base/str.h"

#include <string.h>

int32_t utf8_decode(const char *text, int64_t bytes, int *ret_bytes)
{
    const uint8_t *p = (const uint8_t *)text;
    if (p[0] < 0x80) {
        *ret_bytes = 1;
        return p[0];
    }
    static const int32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    int n = p[0] >= 0xf8 ? 0 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc0 ? 2 : 0;
    if (n == 0 || n > bytes) return -1;
    int32_t code = p[0] & (0x7f >> n);
    for (int i = 1; i < n; i++) {
        if (utf8_begins(text[i])) return -1;
        code = code << 6 | (p[i] & 0x3f);
    }
    bool surrogate = code >= 0xd800 && code < 0xe000;
    if (code < smallest[n] || code >= UTF8_LIMIT || surrogate) return -1;
    *ret_bytes = n;
    return code;
}

bool utf8_is(const char *text)
{
    int n = 0;
    for (int64_t left = (int64_t)strlen(text); left > 0; text += n, left -= n)
        if (utf8_decode(text, left, &n) < 0) return false;
    return true;
}

int utf8_fit(const char *text, int most)
{
    int n = (int)strnlen(text, (size_t)most);
    if (n < most) return n;
    while (n > 0 && !utf8_begins(text[n])) n--;
    return n;
}

void utf8_encode(int32_t code, char ret_text[UTF8_BYTES])
{
    int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--) {
        ret_text[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    ret_text[0] = (char)(lead[n] | code);
    ret_text[n] = '\0';
}

/* The number of bytes of a character by its first byte; 0 if no character begins with that byte. */
static int length_by_first(uint8_t first)
{
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4) return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

int utf8_unfinished(const char *text, int64_t bytes)
{
    for (int n = 1; n <= 3 && n <= bytes; n++) {
        char first = text[bytes - n];
        if (!utf8_begins(first)) continue;
        return length_by_first((uint8_t)first) > n ? n : 0;
    }
    return 0;
}

void utf8_append_valid(struct str *s, const char *text, int64_t bytes)
{
    static const char replacement[] = "\xef\xbf\xbd";
    for (int64_t at = 0; at < bytes;) {
        int n = 1;
        bool valid = utf8_decode(text + at, bytes - at, &n) >= 0;
        if (valid)
            str_append_bytes(s, text + at, n);
        else
            str_append(s, replacement);
        at += valid ? n : 1;
    }
}
