/* A folder as a disk may hold it after a power cut, computed from a record of changes. */
#pragma once
#include "driver.h"

/* What a disk keeps of changes that were not synced. Changes that were synced are always kept: data
 * by a sync of the file, names by a sync of their folder. */
enum survival {
    KEEP_NONE,    /* nothing */
    KEEP_ALL,     /* everything: the program was merely killed */
    KEEP_JOURNAL, /* names up to a random change, as with a journal; data at random */
    KEEP_ANY,     /* each change at random */
    SURVIVALS
};

struct disk_change {
    struct faults_change_record r;
    const char *data;
    int file, dir, dir2; /* objects */
};

struct disk {
    struct disk_object *object; /* object 0 is the folder itself */
    int objects;
    struct disk_change *change;
    int changes;
    char *record;
};

/* The initial folder; to be read before the program runs, whose record is then added. */
void disk_read(struct disk *d, const char *folder);
void disk_add_record(struct disk *d, const char *path);

/* Writes to `folder`, which is replaced, what is left after the first `prefix` changes. */
void disk_write(const struct disk *d, int prefix, enum survival s, uint64_t seed,
                const char *folder);
