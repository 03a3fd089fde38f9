/* corpus.h - makes a data set of byte pair tokens from texts of any size, in constant memory.
 *
 * Each document ends with <|endoftext|>; its number and a seed decide whether it is training or
 * validation data. A single document has no end token; its last tenth, by characters, is the
 * validation data, as in nanoGPT. The files do not depend on the number of threads. */
#ifndef DATA_CORPUS_H
#define DATA_CORPUS_H

#include "data/dataset.h"
#include "text/tokenizer.h"

struct corpus {
    const char *data_dir, *name;
    const char *const *from; /* files, folders, "-" (data/corpus_input.h) */
    int froms;
    const struct tokenizer *tokenizer;
    bool special;     /* texts of special tokens become these tokens */
    double val_share; /* of the documents, above 0 and below 1 */
    uint32_t seed;
    bool replace;
    int64_t threads;
    /* Called with the bytes on disk that were read so far, and with their total; may be NULL. */
    void (*each)(void *user, int64_t done, int64_t total);
    void *user;
};

/* Errors of dataset_write and corpus_input.h. ST_FORMAT: the message names the file and the line.
 * ST_USAGE: a split has no documents. */
enum status corpus_write(const struct corpus *c, struct arena *a);

#endif
