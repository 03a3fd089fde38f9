/* tokenizers.h - the tokenizers that a word of the user names. */
#ifndef DATA_TOKENIZERS_H
#define DATA_TOKENIZERS_H

#include "text/tokenizer.h"

/* "gpt2": from the cache ($XDG_CACHE_HOME/strobe/gpt2, else ~/.cache/strobe/gpt2), or downloaded
 * and verified by its SHA-256. "bytes": each byte is a token, and <|endoftext|>. A folder of
 * one of these names, and any other word, is a path (text/tokenizer.h). */
enum status tokenizers_find(struct tokenizer *t, const char *word, struct arena *a);

#endif
