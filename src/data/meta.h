/* meta.h - meta.json of a data set: what the numbers in train.bin and val.bin mean, and the facts by
 * which a damaged one is known. docs/FORMATS.md has it field by field. */
#ifndef DATA_META_H
#define DATA_META_H

#include "base/hash.h"
#include "data/dataset.h"

enum { META_VERSION = 1, META_VOCABULARY_MAX = 65536 /* a token is 16 bits */ };

struct meta {
    const char *source; /* where the text came from, for people */
    struct vocabulary vocabulary;
    struct meta_split {
        int64_t tokens;
        char sha256[HASH_HEX];
    } split[SPLIT_COUNT];
};

/* "train", "val": the names of the fields, and of the files before ".bin". */
const char *split_name(enum split split);

/* Reads and checks: version, kind, a sorted vocabulary of single characters, its digest. What does
 * not fit is ST_FORMAT and named. */
enum status meta_read(struct meta *m, const char *path, struct arena *a);
enum status meta_write(const struct meta *m, const char *path);

#endif
