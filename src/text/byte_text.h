/* byte_text.h - bytes as visible characters, the way vocab.json and merges.txt have them.
 *
 * GPT-2 writes each byte of a token as one character: printable bytes of Latin-1 as themselves, the
 * other 68 in their order as U+0100, U+0101, ... */
#ifndef TEXT_BYTE_TEXT_H
#define TEXT_BYTE_TEXT_H

#include "base/arena.h"
#include "base/str.h"
#include "text/bpe.h"

/* False if a character stands for no byte. */
bool byte_text_read(const char *text, int64_t bytes, struct arena *a, struct token_text *ret);
void byte_text_append(struct str *s, const struct token_text *t);

#endif
