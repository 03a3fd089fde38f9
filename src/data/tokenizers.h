/* tokenizers.h - finds a tokenizer by name or path. */
#ifndef DATA_TOKENIZERS_H
#define DATA_TOKENIZERS_H

#include "text/tokenizer.h"

/* "gpt2" is read from the cache ($XDG_CACHE_HOME/strobe/gpt2, else ~/.cache/strobe/gpt2) or
 * downloaded and verified by its SHA-256. "bytes" has 257 tokens, the 256 bytes and <|endoftext|>.
 * Any other word is a path (text/tokenizer.h), and so is "gpt2" or "bytes" if there is a folder
 * with this name. */
enum status tokenizers_find(struct tokenizer *t, const char *word, struct arena *a);

#endif
