#include "text/byte_text.h"

#include "base/utf8.h"

/* The bytes 0 to 0x20, 0x7f to 0xa0 and 0xad are written as U+0100 and the next characters. */
enum { MOVED = 0x100, FIRST = 0x21, SECOND = 0x7f, SECOND_END = 0xa1, THIRD = 0xad };
enum { AFTER_FIRST = MOVED + FIRST, AFTER_SECOND = AFTER_FIRST + SECOND_END - SECOND };

static int32_t code_of(int byte)
{
    if (byte < FIRST) return MOVED + byte;
    if (byte >= SECOND && byte < SECOND_END) return AFTER_FIRST + byte - SECOND;
    return byte == THIRD ? AFTER_SECOND : byte;
}

/* The byte that a character stands for; -1: none. */
static int byte_of(int32_t code)
{
    if (code < 0 || code > AFTER_SECOND) return -1;
    if (code < MOVED) return code_of(code) == code ? code : -1;
    if (code < AFTER_FIRST) return code - MOVED;
    return code < AFTER_SECOND ? code - AFTER_FIRST + SECOND : THIRD;
}

bool byte_text_read(const char *text, int64_t bytes, struct arena *a, struct token_text *ret)
{
    char *read = arena_alloc(a, bytes + 1);
    int length = 0;
    for (int64_t at = 0; at < bytes;) {
        int n, byte = byte_of(utf8_decode(text + at, bytes - at, &n));
        if (byte < 0) return false;
        read[length++] = (char)byte;
        at += n;
    }
    *ret = (struct token_text){read, length};
    return true;
}

void byte_text_append(struct str *s, const struct token_text *t)
{
    for (int i = 0; i < t->length; i++) {
        char character[UTF8_BYTES];
        utf8_encode(code_of((uint8_t)t->bytes[i]), character);
        str_append(s, character);
    }
}
