/* huggingface.h - writes the folder of a GPT-2 that Hugging Face's transformers can open. */
#ifndef EXCHANGE_HUGGINGFACE_H
#define EXCHANGE_HUGGINGFACE_H

#include "exchange/exchange.h"

/* Writes a config.json for transformers' GPT2Config with the keys of the model, including dropout.
 * c->model.vocab_size is the number of rows of the token table. */
enum status huggingface_write_config(const struct config *c, const char *path);
/* Writes config.json, model.safetensors and, if the texts of the tokens are known, tokenizer.json
 * and tokenizer_config.json. The folder is created atomically. Biases that the model does not have
 * are written as zeros. */
enum status huggingface_write(const struct exchange_source *s, const char *path, struct arena *a);

#endif
