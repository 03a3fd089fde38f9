/* utf8.h - Unicode code points from and to UTF-8 (RFC 3629). */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/base.h"

enum { UTF8_LIMIT = 0x110000, UTF8_BYTES = 5 }; /* first number that is none; longest text + end */

/* The code point that starts at `text`, of which `bytes` > 0 are there; *ret_bytes is its length.
 * Negative where this is no UTF-8: overlong, a surrogate, out of range, cut off. */
int32_t utf8_decode(const char *text, int64_t bytes, int *ret_bytes);
/* Whether all of a text is UTF-8. */
bool utf8_is(const char *text);
/* False for a byte in which a code point goes on: counting the others counts code points. */
static inline bool utf8_begins(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}
/* Writes the code point and a zero byte. */
void utf8_encode(int32_t code, char ret_text[UTF8_BYTES]);

#endif
