/* published.h - the list of models that are known by name: GPT-2's four sizes. */
#ifndef EXCHANGE_PUBLISHED_H
#define EXCHANGE_PUBLISHED_H

#include "config/config.h"

struct published;

/* Finds a published model by name; NULL: there is none. */
const struct published *published_find(const char *name);
/* "gpt2, gpt2-medium, ..." */
const char *published_names(struct arena *a);
/* The validation loss on OpenWebText that nanoGPT published (README, "baselines"); NAN: none. */
double published_loss(const char *name);
/* Sets the configuration keys of the model; reads no files. */
void published_config(const struct published *p, struct config_model *ret);
/* Whether published_get would download the model; describes that in a sentence. */
bool published_is_remote(const struct published *p, const char **ret_words, struct arena *a);
/* Finds the folder with the model's config.json and model.safetensors in Strobe's cache
 * ($XDG_CACHE_HOME/strobe/NAME, else ~/.cache/strobe/NAME) or in Hugging Face's ($HF_HUB_CACHE,
 * $HF_HOME/hub, else ~/.cache/huggingface/hub). Otherwise downloads the model to Strobe's cache and
 * verifies its length and SHA-256. ST_IO: the message says which file to put where. */
enum status published_get(const struct published *p, const char **ret_folder, struct arena *a);

#endif
