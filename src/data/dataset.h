/* dataset.h - a data set on disk: a folder with train.bin, val.bin (raw little-endian uint16 token
 * numbers, as nanoGPT writes them) and meta.json (vocabulary, counts, SHA-256 of each file).
 * docs/FORMATS.md has it byte for byte. */
#ifndef DATA_DATASET_H
#define DATA_DATASET_H

#include "data/vocabulary.h"

enum split { SPLIT_TRAIN, SPLIT_VAL, SPLIT_COUNT };

struct dataset {
    const char *name;
    struct vocabulary vocabulary;
    const uint16_t *tokens[SPLIT_COUNT]; /* memory-mapped */
    int64_t count[SPLIT_COUNT];
    /* private to dataset.c */
    void *map[SPLIT_COUNT];
    int64_t map_bytes[SPLIT_COUNT];
};

/* A name is one word without slashes, for it becomes a folder. Otherwise ST_USAGE. */
enum status dataset_check_name(const char *name);
/* Maps data_dir/name. Missing: ST_IO, names the one command that makes it. A file whose size or
 * checksum is not what meta.json says: ST_FORMAT. */
enum status dataset_open(struct dataset *d, const char *data_dir, const char *name,
                         struct arena *a);
void dataset_close(struct dataset *d);

/* Writes a character-level data set from a text: sorted unique characters, the first 90 % train
 * (int(0.9 n), as nanoGPT), the rest validation. Atomic: a folder appears whole or not at all. */
struct dataset_facts {
    int64_t characters, count[SPLIT_COUNT];
    int vocabulary;
};
enum status dataset_write_characters(const char *data_dir, const char *name, const char *text,
                                     int64_t bytes, const char *source, struct dataset_facts *ret);

#endif
