/* unicode.h - the classes of characters that GPT-2's pattern tells apart, in Unicode 16.0.
 *
 * Letter and number are the general categories L* and N*; space is what \s matches in the regular
 * expressions of tiktoken 0.14 and Hugging Face's tokenizers 0.23. The table is our own, so a newer
 * library on the system never changes a token. */
#ifndef TEXT_UNICODE_H
#define TEXT_UNICODE_H

#include "base/base.h"

enum text_class { CLASS_OTHER, CLASS_LETTER, CLASS_NUMBER, CLASS_SPACE };

/* For a code point below UTF8_LIMIT. Any thread may call it at any time. */
enum text_class unicode_class(int32_t code);

/* Decodes the character at `text`, which has `bytes` > 0 bytes. A byte that does not begin a valid
 * one (utf8.h) is a character by itself, of class other. *ret_bytes is the length, 1 to 4. */
enum text_class unicode_next(const char *text, int64_t bytes, int *ret_bytes);

#endif
