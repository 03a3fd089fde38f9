/* dataset.h - a data set on disk, written by Strobe or by another program (data/foreign.h).
 *
 * Strobe writes a folder with train.bin and val.bin (raw little-endian token ids, uint16 as in
 * nanoGPT, or uint32 if the vocabulary has more than 65,536 entries) and meta.json (vocabulary,
 * counts, digests of each file). docs/FORMATS.md specifies the format. */
#ifndef DATA_DATASET_H
#define DATA_DATASET_H

#include "data/token_split.h"
#include "data/vocabulary.h"

struct meta;

enum split { SPLIT_TRAIN, SPLIT_VAL, SPLIT_COUNT };

struct dataset {
    const char *name;
    struct vocabulary vocabulary;
    int64_t count[SPLIT_COUNT];
    const char *source; /* where the text came from; may be "" */
    int64_t documents;  /* 0: unknown */
    const char *meta;   /* the text of meta.json; for a foreign set Strobe makes such a text */
    /* Identifies the tokens of a split. In a set of Strobe: the SHA-256 of the file. In a foreign
     * set: the SHA-256 of each file's number of tokens, then the blocks (data/token_split.h). */
    char sha256[SPLIT_COUNT][HASH_HEX];
    /* private to dataset.c */
    struct token_split tokens[SPLIT_COUNT];
    char blocks_sha256[SPLIT_COUNT][HASH_HEX]; /* "": unknown, or the split is small */
    bool foreign, verified[SPLIT_COUNT];       /* all tokens of the split were verified */
    const char *remake; /* the command that makes the set again; NULL: there is none */
};

/* Checks a name, which becomes a folder name. ST_USAGE: it is empty, begins with a dot, is too
 * long, has a slash or a control character, or looks like the name of a temporary file. */
enum status dataset_check_name(const char *name);
/* Opens data_dir/name and verifies the set in bounded time: a small split completely, a larger
 * split by its size and its blocks (data/token_split.h). Only a large split whose meta.json, of an
 * older version, has no digest of blocks is read completely. If another process replaces the set
 * meanwhile, all opened files are old or all are new. ST_ABSENT: the set does not exist; the
 * message has the command that creates it. ST_FORMAT: the size, the checksum or a token of a file
 * contradicts meta.json, or a file of another program is malformed. ST_BUSY: another process
 * replaced the set again and again. */
enum status dataset_open(struct dataset *d, const char *data_dir, const char *name,
                         struct arena *a);
/* Verifies the tokens that dataset_open did not read. ST_FORMAT: as for dataset_open. */
enum status dataset_verify(struct dataset *d);
void dataset_close(struct dataset *d);
/* *ret is the vocabulary size of a set, or 0 if there is no such set. Reads no tokens. */
enum status dataset_vocabulary(const char *data_dir, const char *name, int64_t *ret,
                               struct arena *a);
/* Reads `n` tokens of a split. ST_FORMAT if the file became shorter since the set was opened, or if
 * a token is not in the vocabulary. */
enum status dataset_read(const struct dataset *d, enum split split, int64_t first, int64_t n,
                         int32_t *ret);

struct dataset_text {
    const struct data_kind *kind;
    const char *text;
    int64_t bytes;
    const char *source; /* where the text came from; stored in meta.json for information */
};
struct dataset_facts {
    int64_t tokens, count[SPLIT_COUNT];
    int vocabulary;
};
/* Creates or replaces the folder of a set: `fill` writes the two .bin files into a temporary folder
 * and sets the contents of meta.json in *ret. ST_USAGE: as for dataset_write. */
enum status dataset_create(const char *data_dir, const char *name, bool replace,
                           enum status (*fill)(void *user, const char *folder, struct meta *ret),
                           void *user, struct arena *a);

/* Writes a data set from a text; the folder appears complete or not at all. The first int(0.9 n) of
 * its n tokens, as in nanoGPT, are the training split, the other tokens the validation split.
 * ST_USAGE: the set exists and `replace` is false, another process writes a set in data_dir, or the
 * text has too few tokens. */
enum status dataset_write(const char *data_dir, const char *name, const struct dataset_text *t,
                          bool replace, struct dataset_facts *ret);

#endif
