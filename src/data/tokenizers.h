/* tokenizers.h - finds a tokenizer by name or path. */
#ifndef DATA_TOKENIZERS_H
#define DATA_TOKENIZERS_H

#include "text/tokenizer.h"

/* "gpt2": from the cache ($XDG_CACHE_HOME/strobe/gpt2, else ~/.cache/strobe/gpt2), or downloaded
 * and verified by its SHA-256. "bytes": the 256 bytes and <|endoftext|> are the tokens. Any other
 * word, or one of these if there is a folder with this name, is a path (text/tokenizer.h). */
enum status tokenizers_find(struct tokenizer *t, const char *word, struct arena *a);

#endif
