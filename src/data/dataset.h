/* dataset.h - a data set on disk: one of Strobe's, or a folder of another program (data/foreign.h).
 *
 * One of Strobe's is a folder with train.bin and val.bin (raw little-endian token ids, uint16 as in
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
    const char *meta;   /* the text of meta.json, or what it would be */
    /* What identifies the tokens of a split: SHA-256 of the file; of a foreign set, of the tokens
     * of each file and of the blocks of the split (data/token_split.h). */
    char sha256[SPLIT_COUNT][HASH_HEX];
    /* private to dataset.c */
    struct token_split tokens[SPLIT_COUNT];
    char blocks_sha256[SPLIT_COUNT][HASH_HEX]; /* "": unknown, or the split is small */
    bool foreign, verified[SPLIT_COUNT];       /* all tokens of the split were verified */
    const char *remake; /* the command that makes the set again; NULL: there is none */
};

/* A name is one word without slashes and control characters that does not begin with a dot, because
 * it becomes a folder name. Otherwise ST_USAGE. */
enum status dataset_check_name(const char *name);
/* Opens data_dir/name and verifies it in a time that does not depend on its size: all of a small
 * split, of another one its size and its blocks (data/token_split.h); a set of an older version,
 * which has no digest of blocks, wholly. All its files are of one writing, also while another
 * process replaces the set. If it is missing: ST_ABSENT, with the command that creates it. If the
 * size, the checksum or a token of a file contradicts meta.json, or a file of another program is
 * malformed: ST_FORMAT. */
enum status dataset_open(struct dataset *d, const char *data_dir, const char *name,
                         struct arena *a);
/* Verifies what dataset_open left out. ST_FORMAT as there. */
enum status dataset_verify(struct dataset *d);
void dataset_close(struct dataset *d);
/* The size of the vocabulary of a set, without a look at its tokens; 0: there is no such set. */
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
    const char *source; /* for readers: where the text came from */
};
struct dataset_facts {
    int64_t tokens, count[SPLIT_COUNT];
    int vocabulary;
};
/* Creates or replaces the folder of a set: `fill` writes the two .bin files into a temporary folder
 * and says what meta.json shall have. Refusals as of dataset_write. */
enum status dataset_create(const char *data_dir, const char *name, bool replace,
                           enum status (*fill)(void *user, const char *folder, struct meta *ret),
                           void *user, struct arena *a);

/* Writes a data set from a text; the folder appears complete or not at all. The first int(0.9 n) of
 * its n tokens, as in nanoGPT, are the training split, the others the validation split. ST_USAGE
 * if another process writes a set in data_dir, or if there is one and `replace` is false. */
enum status dataset_write(const char *data_dir, const char *name, const struct dataset_text *t,
                          bool replace, struct dataset_facts *ret);

#endif
