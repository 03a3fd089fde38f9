/* corpus_input.h - reads the texts for a data set from files and folders, plain or compressed.
 *
 * A file is one document, except that in a file whose name ends in .jsonl (or .jsonl.gz,
 * .jsonl.zst) each line {"text": "..."} is a document. Folders are walked in the order of names.
 * Files compressed with gzip or zstd are decompressed while they are read (base/unpack.h). */
#ifndef DATA_CORPUS_INPUT_H
#define DATA_CORPUS_INPUT_H

#include "base/arena.h"

struct corpus_file {
    const char *path; /* or "the standard input" */
    bool jsonl;
    int64_t bytes; /* on disk */
    int spooled;   /* descriptor of an unlinked copy of the standard input; -1: a file on disk */
};

struct corpus_input {
    struct corpus_file *file;
    int files;
    int64_t bytes; /* of all files on disk */
    /* private to corpus_input.c */
    struct unpack *open; /* the current file */
    int at;              /* index of the current file */
    int64_t before;      /* bytes on disk of the files before the current file */
};

/* Lists the files. `spool` is a folder for an unlinked copy of the standard input. ST_IO: a file
 * does not exist. ST_USAGE: there are no files, or a folder has none. */
enum status corpus_input_open(struct corpus_input *c, const char *const *from, int n,
                              const char *spool, struct arena *a);
void corpus_input_close(struct corpus_input *c);
/* Starts again with the first file. */
enum status corpus_input_rewind(struct corpus_input *c);
/* Reads up to `most` bytes of the current file; *ret_bytes is 0 at the end of the file. */
enum status corpus_input_read(struct corpus_input *c, char *ret, int64_t most, int64_t *ret_bytes);
/* Opens the next file; *ret is false if there is none. */
enum status corpus_input_next(struct corpus_input *c, bool *ret);
/* Bytes on disk that were read so far. */
int64_t corpus_input_done(const struct corpus_input *c);

#endif
