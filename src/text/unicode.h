/* unicode.h - the classes of characters that GPT-2's pattern distinguishes, in Unicode 16.0.
 *
 * Letters and numbers are the characters of the general categories L* and N*. Spaces are the
 * characters that \s matches in the regular expressions of tiktoken 0.14 and Hugging Face's
 * tokenizers 0.23. Strobe has its own table, so that a newer library on the system never changes a
 * token. */
#ifndef TEXT_UNICODE_H
#define TEXT_UNICODE_H

#include "base/base.h"

enum text_class { CLASS_OTHER, CLASS_LETTER, CLASS_NUMBER, CLASS_SPACE };

/* The class of a code point below UTF8_LIMIT. Thread-safe. */
enum text_class unicode_class(int32_t code);

/* Returns the class of the character at the beginning of `text`, which has `bytes` > 0 bytes.
 * *ret_bytes is the character's length, 1 to 4. A byte that does not begin a valid character
 * (utf8.h) is a character of length 1 and class CLASS_OTHER. */
enum text_class unicode_next(const char *text, int64_t bytes, int *ret_bytes);

#endif
