#include "base/visible.h"

#include "base/str.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/* Characters that are invisible or change how others are shown: C1 controls, soft hyphen,
 * zero-width characters, direction marks and overrides, line separators, byte order mark, tags and
 * others. */
static bool is_hidden(int32_t code)
{
    static const struct {
        int32_t first, last;
    } ranges[] = {{0x80, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},    {0x180e, 0x180e},
                  {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},  {0xfeff, 0xfeff},
                  {0xfff9, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0xe007f}};
    for (int i = 0; i < COUNT_OF(ranges); i++)
        if (code >= ranges[i].first && code <= ranges[i].last) return true;
    return false;
}

int visible_step(const char *text, int64_t bytes, bool lines, char ret_form[VISIBLE_BYTES])
{
    int n = 1;
    int32_t code = utf8_decode(text, bytes, &n);
    if (code < 0) {
        snprintf(ret_form, VISIBLE_BYTES, "\\x%02x", (unsigned char)*text);
        return 1;
    }
    bool stays = lines && (code == '\n' || code == '\t');
    if (!stays && (code == '\n' || code == '\t' || code == '\r'))
        snprintf(ret_form, VISIBLE_BYTES, "\\%c", code == '\n' ? 'n' : code == '\t' ? 't' : 'r');
    else if (!stays && (code < 0x20 || code == 0x7f))
        snprintf(ret_form, VISIBLE_BYTES, "\\x%02x", (unsigned)code);
    else if (is_hidden(code))
        snprintf(ret_form, VISIBLE_BYTES, "U+%04X", (unsigned)code);
    else {
        memcpy(ret_form, text, (size_t)n);
        ret_form[n] = '\0';
    }
    return n;
}

static void append(struct str *s, const char *text, bool lines)
{
    char form[VISIBLE_BYTES];
    int n;
    for (int64_t left = (int64_t)strlen(text); left > 0; text += n, left -= n) {
        n = visible_step(text, left, lines, form);
        str_append(s, form);
    }
}

void visible_append(struct str *s, const char *text)
{
    append(s, text, false);
}

void visible_append_lines(struct str *s, const char *text)
{
    append(s, text, true);
}

void visible_in_place(char *text, int64_t size, bool lines)
{
    enum { MOST = 2048 };
    char copy[MOST], form[VISIBLE_BYTES];
    int64_t length = (int64_t)strlen(text), written = 0;
    BUG_IF(size > MOST || length >= size, "a text of %lld bytes is too long", (long long)length);
    memcpy(copy, text, (size_t)length);
    for (int64_t i = 0, n; i < length; i += n) {
        n = visible_step(copy + i, length - i, lines, form);
        int64_t more = (int64_t)strlen(form);
        if (written + more >= size) break;
        memcpy(text + written, form, (size_t)more);
        written += more;
    }
    text[written] = '\0';
}
