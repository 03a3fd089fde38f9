/* meta.h - meta.json of a data set: the vocabulary of train.bin and val.bin, and the counts and
 * checksums that detect corruption. docs/FORMATS.md describes each field. */
#ifndef DATA_META_H
#define DATA_META_H

#include "data/dataset.h"

enum { META_VERSION = 1 };

struct meta {
    const char *text;   /* the content of the file */
    const char *source; /* origin of the text, for information only */
    struct vocabulary vocabulary;
    int64_t documents; /* 0: unknown */
    struct meta_split {
        int64_t tokens;
        char sha256[HASH_HEX];
        char blocks_sha256[HASH_HEX]; /* of the blocks of a large split (token_split.h), or "" */
    } split[SPLIT_COUNT];
};

/* "train" or "val": the name of the split's field in meta.json, and of its file without ".bin". */
const char *split_name(enum split split);

/* A text as one line of valid UTF-8 (base/visible.h). */
const char *meta_printable(const char *text, struct arena *a);

/* Checks version, kind, vocabulary and its digest. Errors are ST_FORMAT and name the field. */
enum status meta_read(struct meta *m, const char *path, struct arena *a);
enum status meta_write(const struct meta *m, const char *path);
/* The text that meta_write would write. */
const char *meta_text(const struct meta *m, struct arena *a);

#endif
