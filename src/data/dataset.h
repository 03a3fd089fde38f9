/* dataset.h - a data set on disk: a folder with train.bin, val.bin (raw little-endian uint16 token
 * ids, the format of nanoGPT) and meta.json (vocabulary, counts, SHA-256 of each file).
 * docs/FORMATS.md specifies the format. */
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

/* A name is one word without slashes, because it becomes a folder name. Otherwise ST_USAGE. */
enum status dataset_check_name(const char *name);
/* Maps data_dir/name. If it is missing: ST_IO, with the command that creates it. If the size or
 * checksum of a file differs from meta.json: ST_FORMAT. */
enum status dataset_open(struct dataset *d, const char *data_dir, const char *name,
                         struct arena *a);
void dataset_close(struct dataset *d);

/* Writes a data set from a text; the folder appears complete or not at all. The first int(0.9 n) of
 * its n tokens, as in nanoGPT, are the training split, the others the validation split. */
struct dataset_facts {
    int64_t tokens, count[SPLIT_COUNT];
    int vocabulary;
};
enum status dataset_write(const struct data_kind *kind, const char *data_dir, const char *name,
                          const char *text, int64_t bytes, const char *source,
                          struct dataset_facts *ret);

#endif
