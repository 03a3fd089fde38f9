/* utf8.h - decodes and encodes Unicode code points in UTF-8 (RFC 3629). */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/base.h"

struct str;

#define BYTE_ORDER_MARK "\xef\xbb\xbf"
/* One past the last code point; the longest encoding plus a zero byte. */
enum { UTF8_LIMIT = 0x110000, UTF8_BYTES = 5 };

/* Decodes the code point at `text`, which has `bytes` > 0 bytes; *ret_bytes is its length. Negative
 * if the bytes are not valid UTF-8: overlong, a surrogate, out of range, truncated. */
int32_t utf8_decode(const char *text, int64_t bytes, int *ret_bytes);
/* True if the whole text is valid UTF-8. */
bool utf8_is(const char *text);
/* False for a continuation byte. Counting the other bytes counts code points. */
static inline bool utf8_begins(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}
/* How many of the first `most` bytes of a text are whole characters. */
int utf8_fit(const char *text, int most);
/* How many of the last bytes, 0 to 3, begin a character that further bytes could complete. */
int utf8_unfinished(const char *text, int64_t bytes);
/* Appends a text, with U+FFFD for every byte that is not part of a valid character. */
void utf8_append_valid(struct str *s, const char *text, int64_t bytes);
/* Writes the code point and a zero byte. */
void utf8_encode(int32_t code, char ret_text[UTF8_BYTES]);

#endif
