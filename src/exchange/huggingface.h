/* huggingface.h - the folder of Hugging Face's GPT-2, which transformers opens. */
#ifndef EXCHANGE_HUGGINGFACE_H
#define EXCHANGE_HUGGINGFACE_H

#include "exchange/exchange.h"

/* Writes what transformers' GPT2Config reads: the keys of the model, with its dropout.
 * c->model.vocab_size is the number of rows of the token table. */
enum status huggingface_write_config(const struct config *c, const char *path);
/* The row's `write`: config.json, model.safetensors and, if the texts of the tokens are known,
 * tokenizer.json with tokenizer_config.json. The folder appears as a whole. Biases that the model
 * lacks are zeros. */
enum status huggingface_write(const struct exchange_source *s, const char *path, struct arena *a);

#endif
