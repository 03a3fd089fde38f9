/* corpus.h - makes a data set of byte pair tokens from texts of any size, in constant memory.
 *
 * Each document ends with <|endoftext|>; the document's number and a seed decide whether the
 * document is training or validation data. If there is only one document, it gets no end token, and
 * its last tenth, by characters, is the validation data, as in nanoGPT. The number of threads does
 * not change the files that are written. */
#ifndef DATA_CORPUS_H
#define DATA_CORPUS_H

#include "data/dataset.h"
#include "text/tokenizer.h"

struct corpus {
    const char *data_dir, *name;
    const char *const *from; /* files, folders, "-" (data/corpus_input.h) */
    int froms;
    const struct tokenizer *tokenizer;
    bool special;     /* the text of a special token becomes this token; false: plain text */
    double val_share; /* share of the documents that is validation data, above 0 and below 1 */
    uint32_t seed;
    bool replace;
    int64_t threads;
    /* Called with the bytes on disk that were read so far and the bytes of all files; or NULL. */
    void (*each)(void *user, int64_t done, int64_t total);
    void *user;
};

/* Fails with the errors of dataset_write and corpus_input.h. ST_FORMAT: the message names the file
 * and the line. ST_USAGE: a split has no documents. */
enum status corpus_write(const struct corpus *c, struct arena *a);

#endif
