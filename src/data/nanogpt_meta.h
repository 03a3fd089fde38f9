/* nanogpt_meta.h - reads and writes meta.pkl, the characters of a data set of nanoGPT. */
#ifndef DATA_NANOGPT_META_H
#define DATA_NANOGPT_META_H

#include "data/vocabulary.h"

/* Reads the characters. ST_FORMAT: the file is not a pickle (data/pickle.h) of a dictionary with
 * "vocab_size", "itos" and "stoi", these contradict each other, or the characters are not sorted by
 * code point, as nanoGPT sorts them. */
enum status nanogpt_meta_read(struct vocabulary *v, const char *path, struct arena *a);
/* Writes a vocabulary of characters as meta.pkl. */
enum status nanogpt_meta_write(const struct vocabulary *v, const char *path);

#endif
