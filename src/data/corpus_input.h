/* corpus_input.h - the texts that a data set is made of: files and folders, plain or packed.
 *
 * A file is one document; of a file whose name ends in .jsonl (or .jsonl.gz, .jsonl.zst) each line
 * is one, {"text": "..."}. Folders are walked in the order of names. What is packed with gzip or
 * zstd is unpacked as it is read (base/unpack.h). */
#ifndef DATA_CORPUS_INPUT_H
#define DATA_CORPUS_INPUT_H

#include "base/arena.h"

struct corpus_file {
    const char *path; /* or "the standard input" */
    bool jsonl;
    int64_t bytes; /* on disk */
    int spooled;   /* a copy of the standard input without a name; else -1 */
};

struct corpus_input {
    struct corpus_file *file;
    int files;
    int64_t bytes; /* of all files on disk */
    /* private to corpus_input.c */
    struct unpack *open; /* the file that is read */
    int at;
    int64_t before; /* bytes of the files before it */
};

/* Lists the files. `spool` is a folder for a copy of the standard input, which has no name there.
 * ST_IO: a file is not there; ST_USAGE: there is none, or a folder without texts. */
enum status corpus_input_open(struct corpus_input *c, const char *const *from, int n,
                              const char *spool, struct arena *a);
void corpus_input_close(struct corpus_input *c);
/* Starts again with the first file. */
enum status corpus_input_rewind(struct corpus_input *c);
/* Up to `most` bytes of the file that is read; *ret_bytes is 0 at its end. */
enum status corpus_input_read(struct corpus_input *c, char *ret, int64_t most, int64_t *ret_bytes);
/* Goes on to the next file; false: there is none. */
enum status corpus_input_next(struct corpus_input *c, bool *ret);
/* Bytes on disk that were read so far. */
int64_t corpus_input_done(const struct corpus_input *c);

#endif
