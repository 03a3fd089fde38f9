/* corpus.h - makes a data set of byte pair tokens from texts of any size, in flat memory.
 *
 * Documents end with <|endoftext|>, and each is training or validation data as a whole, by its
 * number and a seed. A single document has no end token; its last tenth, by characters, is the
 * validation data, as nanoGPT splits a text. The files depend on the texts and these rules alone,
 * not on the number of threads. */
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
    /* Bytes on disk that were read, of how many; may be NULL. */
    void (*each)(void *user, int64_t done, int64_t total);
    void *user;
};

/* Errors of dataset_write and of corpus_input.h. ST_FORMAT names the file and the line. ST_USAGE: a
 * split has no documents. */
enum status corpus_write(const struct corpus *c, struct arena *a);

#endif
