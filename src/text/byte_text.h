/* byte_text.h - converts between bytes and the visible characters of vocab.json and merges.txt.
 *
 * GPT-2 writes each byte of a token as one character: printable Latin-1 bytes as themselves, the
 * other 68 bytes, in ascending order, as U+0100, U+0101, ... */
#ifndef TEXT_BYTE_TEXT_H
#define TEXT_BYTE_TEXT_H

#include "base/arena.h"
#include "base/str.h"
#include "text/bpe.h"

/* Converts characters to the bytes of a token. Returns false if a character stands for no byte.
 * *ret lives in the arena. */
bool byte_text_read(const char *text, int64_t bytes, struct arena *a, struct token_text *ret);
void byte_text_append(struct str *s, const struct token_text *t);

#endif
